// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers rounded to a grid and back, as QuantizeLinear and DequantizeLinear are defined: what
// quantizers store, and what the algorithms judge that choose factors for them. Plain numbers; no
// graph.

#include <algorithm>
#include <cmath>
#include <span>

namespace tenon::quantizer {

struct Grid {
  float scale = 1;
  float zero = 0;                 // the quantized value of 0
  double low = -127, high = 127;  // of quantized values

  // Divided in float, rounded half to even.
  double quantized(float x) const {
    return std::clamp(static_cast<double>(std::nearbyint(x / scale) + zero), low, high);
  }
  float back(float x) const { return static_cast<float>(quantized(x) - zero) * scale; }
};

// -largest to largest for numbers of up to this size: a channel of a weight.
Grid symmetric_grid(double most, int largest);
// 0 to 255 from the low end to the high one. 0 is always exact.
Grid range_grid(double low, double high);
// -8 to 7 for a block of a weight. clips: of the scale of the largest size and those up to 30 %
// below it, the one with the smallest squared error.
Grid block_grid(std::span<const float> block, bool clips);

}  // namespace tenon::quantizer
