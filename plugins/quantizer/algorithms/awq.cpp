// SPDX-License-Identifier: Apache-2.0
#include "awq.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::quantizer {
namespace {

constexpr float kSmallest = 1e-4F;  // of factors
constexpr int kSteps = 20;

// What int4 makes of w * factor, divided by it again: what plain inputs are multiplied with.
std::vector<float> rounded_weights(const ScaledLayer& layer,
                                   const std::vector<float>& factor,
                                   int64_t group) {
  std::vector<float> out(layer.weights.size());
  const int64_t n = layer.columns;
  for (int64_t o = 0; o < layer.outputs; ++o)
    for (int64_t first = 0; first < n; first += group) {
      const int64_t end = std::min(n, first + group);
      auto scaled = [&](int64_t k) {
        return layer.weights[static_cast<size_t>(o * n + k)] * factor[static_cast<size_t>(k)];
      };
      float most = 0;
      for (int64_t k = first; k < end; ++k)
        most = std::max(most, std::abs(scaled(k)));
      const float scale = most > 0 ? most / 7 : 1;
      for (int64_t k = first; k < end; ++k)
        out[static_cast<size_t>(o * n + k)] =
            std::nearbyint(scaled(k) / scale) * scale / factor[static_cast<size_t>(k)];
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
