// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the gradient of a depthwise convolution's weights, as level/ sees them too; contract
// in depthwise_grad.h.

#include <cstdint>

#include "types.h"
#include "windows.h"

namespace tenon::onednn::kernels {

struct DepthwiseGradArgs {
  ElementType type = ElementType::kF32;  // of x and dy: f32 or bf16
  const void* x = nullptr;               // [images, height, width, channels]
  const void* dy = nullptr;              // [images, out_height, out_width, channels]
  float* dw = nullptr;                   // [channels, window_height, window_width]
  int64_t images = 0, channels = 0;
  Windows windows = {};

  int64_t taps() const { return windows.window_height * windows.window_width; }
};

// Rows [lo, hi) of dy, over all images, and channels [first, end).
struct DepthwiseGradPiece {
  int64_t lo = 0, hi = 0;
  int64_t first = 0, end = 0;
  float* sums = nullptr;  // [taps, channels]
};

}  // namespace tenon::onednn::kernels
