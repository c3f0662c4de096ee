// SPDX-License-Identifier: Apache-2.0
#include "round_trip.hpp"

#include <limits>

namespace tenon::quantizer {
namespace {

constexpr double kLow = -8, kHigh = 7;
constexpr int kTries = 16;  // scales between the widest and 0.7 of it

float positive(double scale) {
  if (scale == 0) return 1;  // all zeros: any scale is right
  return std::max(static_cast<float>(scale), std::numeric_limits<float>::min());
}

double squared_error(std::span<const float> block, double scale) {
  double error = 0;
  for (float number : block) {
    const auto x = static_cast<double>(number);
    const double miss = x - std::clamp(std::nearbyint(x / scale), kLow, kHigh) * scale;
    error += miss * miss;
  }
  return error;
}

}  // namespace

Grid symmetric_grid(double most, int largest) {
  return {positive(most / largest), 0, -static_cast<double>(largest), static_cast<double>(largest)};
}

Grid range_grid(double low, double high) {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  const float scale = positive((high - low) / 255);
  const double zero = std::nearbyint(-low / static_cast<double>(scale));
  return {scale, static_cast<float>(std::clamp(zero, 0.0, 255.0)), 0, 255};
}

Grid block_grid(std::span<const float> block, bool clips) {
  double most = 0;
  for (float x : block)
    most = std::max(most, std::abs(static_cast<double>(x)));
  double best = most / kHigh, least = most > 0 ? squared_error(block, best) : 0;
  for (int i = 1; clips && most > 0 && i <= kTries; ++i) {
    const double scale = most / kHigh * (1 - 0.3 * i / kTries), error = squared_error(block, scale);
    if (error >= least) continue;
    least = error;
    best = scale;
  }
  return {positive(best), 0, kLow, kHigh};
}

}  // namespace tenon::quantizer
