// SPDX-License-Identifier: Apache-2.0
#include "smooth.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::quantizer {
namespace {

constexpr float kSmallest = 1e-5F;  // of factors

// x / factor in uint8, and back.
std::vector<float> rounded_inputs(const ScaledLayer& layer, const std::vector<float>& factor) {
  std::vector<float> out(layer.inputs.size());
  float low = 0, high = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = layer.inputs[i] / factor[i % static_cast<size_t>(layer.columns)];
    low = std::min(low, out[i]);
    high = std::max(high, out[i]);
  }
  float scale = (high - low) / 255;
  if (!(scale > 0)) return out;
  float zero = std::nearbyint(-low / scale);
  for (float& x : out)
    x = (std::clamp(std::nearbyint(x / scale) + zero, 0.0F, 255.0F) - zero) * scale;
  return out;
}

// w * factor in int8 with a scale for each output, and back.
std::vector<float> rounded_weights(const ScaledLayer& layer, const std::vector<float>& factor) {
  std::vector<float> out(layer.weights.size());
  const auto n = static_cast<size_t>(layer.columns);
  for (size_t o = 0; o < static_cast<size_t>(layer.outputs); ++o) {
    float most = 0;
    for (size_t k = 0; k < n; ++k) {
      out[o * n + k] = layer.weights[o * n + k] * factor[k];
      most = std::max(most, std::abs(out[o * n + k]));
    }
    float scale = most > 0 ? most / 127 : 1;
    for (size_t k = 0; k < n; ++k)
      out[o * n + k] = std::nearbyint(out[o * n + k] / scale) * scale;
  }
  return out;
}

double snr_of(const ScaledLayer& layer,
              const std::vector<float>& right,
              const std::vector<float>& factor) {
  return decibels_between(
      right, product(layer, rounded_inputs(layer, factor), rounded_weights(layer, factor)));
}

std::vector<float> factors(const ScaledLayer& layer, double alpha) {
  std::vector<float> out;
  for (size_t k = 0; k < static_cast<size_t>(layer.columns); ++k) {
    double x = static_cast<double>(layer.largest_input[k]);
    double w = static_cast<double>(layer.largest_weight[k]);
    double one = x > 0 && w > 0 ? std::pow(x, alpha) / std::pow(w, 1 - alpha) : 1;
    out.push_back(std::isfinite(one) ? std::max(static_cast<float>(one), kSmallest) : 1);
  }
  return out;
}

}  // namespace

InputFactors smoothed(const ScaledLayer& layer) {
  InputFactors best;
  best.factor.assign(static_cast<size_t>(layer.columns), 1);
  std::vector<float> right = product(layer, layer.inputs, layer.weights);
  best.snr_db = best.plain_snr_db = snr_of(layer, right, best.factor);
  for (int step = 0; step <= 10; ++step) {
    std::vector<float> factor = factors(layer, step / 10.0);
    double snr = snr_of(layer, right, factor);
    if (!(snr > best.snr_db)) continue;
    best.exponent = step / 10.0;
    best.snr_db = snr;
    best.factor = std::move(factor);
  }
  return best;
}

}  // namespace tenon::quantizer
