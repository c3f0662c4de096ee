// SPDX-License-Identifier: Apache-2.0
#include "awq.hpp"

#include <algorithm>
#include <cmath>

#include "round_trip.hpp"

namespace tenon::quantizer {
namespace {

constexpr float kSmallest = 1e-4F;  // of factors
constexpr int kSteps = 20;

// What int4 makes of w * factor, divided by it again: what plain inputs are multiplied with.
std::vector<float> rounded_weights(const ScaledLayer& layer,
                                   const std::vector<float>& factor,
                                   int64_t group) {
  std::vector<float> out(layer.weights.size());
  const auto n = static_cast<size_t>(layer.columns), size = static_cast<size_t>(group);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = layer.weights[i] * factor[i % n];
  for (size_t row = 0; row < out.size(); row += n)
    for (size_t first = 0; first < n; first += size) {
      const std::span<float> block(out.data() + row + first, std::min(size, n - first));
      const Grid grid = block_grid(block, true);
      for (size_t k = 0; k < block.size(); ++k)
        block[k] = grid.back(block[k]) / factor[first + k];
    }
  return out;
}

std::vector<float> factors(const ScaledLayer& layer, double exponent) {
  std::vector<float> out;
  for (float mean : layer.mean_input) {
    double one = std::pow(static_cast<double>(mean), exponent);
    out.push_back(std::isfinite(one) ? std::max(static_cast<float>(one), kSmallest) : 1);
  }
  auto [least, most] = std::minmax_element(out.begin(), out.end());
  const float middle = std::sqrt(*least * *most);
  for (float& one : out)
    one /= middle;
  return out;
}

}  // namespace

InputFactors activation_aware(const ScaledLayer& layer, int64_t group) {
  InputFactors best;
  best.factor.assign(static_cast<size_t>(layer.columns), 1);
  if (layer.columns == 0) return best;
  std::vector<float> right = product(layer, layer.inputs, layer.weights);
  auto snr_of = [&](const std::vector<float>& factor) {
    return decibels_between(right,
                            product(layer, layer.inputs, rounded_weights(layer, factor, group)));
  };
  best.snr_db = best.plain_snr_db = snr_of(best.factor);
  for (int step = 1; step <= kSteps; ++step) {
    const double exponent = static_cast<double>(step) / kSteps;
    std::vector<float> factor = factors(layer, exponent);
    double snr = snr_of(factor);
    if (!(snr > best.snr_db)) continue;
    best.exponent = exponent;
    best.snr_db = snr;
    best.factor = std::move(factor);
  }
  return best;
}

}  // namespace tenon::quantizer
