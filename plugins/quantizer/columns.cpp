// SPDX-License-Identifier: Apache-2.0
#include "columns.hpp"

#include <algorithm>
#include <cmath>

#include "scale.hpp"

namespace tenon::quantizer {
namespace {

constexpr double kLeastGain = 2;  // of noise, or a Mul is not worth it

// Mean over columns of noise over signal. scaled: as it is rounded, a factor for each column.
double column_noise(const std::vector<float>& scaled, const DLTensor& like, int64_t rows) {
  DenseView view(TN_F32, {like.shape, like.shape + like.ndim}, scaled.data());
  std::vector<float> back = dequantized(quantize_weight(*view, {.axis = rows}));
  const auto n = static_cast<size_t>(like.shape[like.ndim - 1]);
  std::vector<double> signal(n, 0), noise(n, 0);
  for (size_t k = 0; k < scaled.size(); ++k) {
    double x = static_cast<double>(scaled[k]), e = x - static_cast<double>(back[k]);
    signal[k % n] += x * x;
    noise[k % n] += e * e;
  }
  double sum = 0;
  for (size_t c = 0; c < n; ++c)
    if (signal[c] > 0) sum += noise[c] / signal[c];
  return sum / static_cast<double>(n);
}

}  // namespace

std::vector<float> column_factors(const DLTensor& tensor, int64_t rows) {
  if (tensor.ndim < 2 || rows >= tensor.ndim - 1) return {};
  const auto n = static_cast<size_t>(tensor.shape[tensor.ndim - 1]);
  const float* data = data_of<const float>(tensor);
  const auto count = static_cast<size_t>(element_count(tensor));
  std::vector<float> most(n, 0);
  for (size_t k = 0; k < count; ++k)
    most[k % n] = std::max(most[k % n], std::abs(data[k]));
  for (float& one : most)
    if (!(one > 0)) one = 1;
  double plain = column_noise({data, data + count}, tensor, rows);
  double scaled = column_noise(without_factors(tensor, most), tensor, rows);
  if (!(scaled * kLeastGain < plain)) return {};
  return most;
}

std::vector<float> without_factors(const DLTensor& tensor, const std::vector<float>& factors) {
  const float* data = data_of<const float>(tensor);
  std::vector<float> out(data, data + element_count(tensor));
  for (size_t k = 0; k < out.size(); ++k)
    out[k] /= factors[k % factors.size()];
  return out;
}

}  // namespace tenon::quantizer
