// SPDX-License-Identifier: Apache-2.0
#include "smooth.hpp"

#include <algorithm>
#include <cmath>

#include "round_trip.hpp"

namespace tenon::quantizer {
namespace {

constexpr float kSmallest = 1e-5F;  // of factors

// x / factor in uint8, and back.
std::vector<float> rounded_inputs(const ScaledLayer& layer, const std::vector<float>& factor) {
  std::vector<float> out(layer.inputs.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = layer.inputs[i] / factor[i % static_cast<size_t>(layer.columns)];
  if (out.empty()) return out;
  const auto [low, high] = std::ranges::minmax(out);
  const Grid grid = range_grid(static_cast<double>(low), static_cast<double>(high));
  for (float& x : out)
    x = grid.back(x);
  return out;
}

// w * factor in int8 with a scale for each output, and back.
std::vector<float> rounded_weights(const ScaledLayer& layer, const std::vector<float>& factor) {
  std::vector<float> out(layer.weights.size());
  const auto n = static_cast<size_t>(layer.columns);
  for (size_t o = 0; o < static_cast<size_t>(layer.outputs); ++o) {
    double most = 0;
    for (size_t k = o * n; k < (o + 1) * n; ++k) {
      out[k] = layer.weights[k] * factor[k - o * n];
      most = std::max(most, std::abs(static_cast<double>(out[k])));
    }
    const Grid grid = symmetric_grid(most, 127);
    for (size_t k = o * n; k < (o + 1) * n; ++k)
      out[k] = grid.back(out[k]);
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
