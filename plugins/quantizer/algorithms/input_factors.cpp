// SPDX-License-Identifier: Apache-2.0
#include "input_factors.hpp"

#include "tenon/sdk/decibels.hpp"

namespace tenon::quantizer {

std::vector<float> product(const ScaledLayer& layer,
                           const std::vector<float>& inputs,
                           const std::vector<float>& weights) {
  const int64_t n = layer.columns;
  constexpr int64_t kLanes = 16;
  std::vector<float> out;
  for (int64_t r = 0; r < layer.rows; ++r)
    for (int64_t o = 0; o < layer.outputs; ++o) {
      const float *x = inputs.data() + r * n, *w = weights.data() + o * n;
      float sums[kLanes] = {}, sum = 0;
      int64_t k = 0;
      for (; k + kLanes <= n; k += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane)
          sums[lane] += x[k + lane] * w[k + lane];
      for (; k < n; ++k)
        sum += x[k] * w[k];
      for (float one : sums)
        sum += one;
      out.push_back(sum);
    }
  return out;
}

double decibels_between(const std::vector<float>& right, const std::vector<float>& found) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    double miss = static_cast<double>(found[i]) - static_cast<double>(right[i]);
    signal += static_cast<double>(right[i]) * static_cast<double>(right[i]);
    noise += miss * miss;
  }
  return decibels(signal, noise);
}

}  // namespace tenon::quantizer
