// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the depthwise convolution, as level/ sees them too; contract in depthwise.h.

#include <cstdint>

#include "epilogue_args.h"
#include "windows.h"

namespace tenon::onednn::kernels {

// Weights, scales and bias lie in blocks of 32 channels, in the order in which bytes of four pixels
// become 32-bit lanes by unpacking within 128 bits.
constexpr int64_t kDepthwiseBlock = 32;
constexpr int64_t depthwise_lane(int64_t channel) {
  return channel % 16 / 4 * 8 + channel % 32 / 16 * 4 + channel % 4;
}
constexpr int64_t kDepthwisePixels = 4;  // of one lane

// Windows of 3 x 3 and 5 x 5 whose results share lanes.
constexpr bool shares_depthwise(const Windows& w) {
  return w.window_height == w.window_width && (w.window_width == 3 || w.window_width == 5) &&
         w.stride_y <= 2 && w.stride_x <= 2 && w.step_x == 1 && w.step_y == 1;
}
// Results side by side that read the same lanes, each with weights of its own that are shifted to
// where its window lies: as many as keep the sums of all in registers.
constexpr int64_t depthwise_columns(const Windows& w) {
  if (!shares_depthwise(w)) return 1;
  if (w.window_width == 3) return w.stride_x == 1 ? 2 : 1;
  return w.stride_x == 1 ? 4 : 2;
}
// Lanes of one row of pixels under these results.
constexpr int64_t depthwise_groups(const Windows& w) {
  const int64_t pixels = (depthwise_columns(w) - 1) * w.stride_x + w.window_width;
  return (pixels + kDepthwisePixels - 1) / kDepthwisePixels;
}
// Of one block's weights: [column][row][group][lane][4], zeros where a result's window is not.
constexpr int64_t depthwise_weight_bytes(const Windows& w) {
  return depthwise_columns(w) * w.window_height * depthwise_groups(w) * kDepthwiseBlock *
         kDepthwisePixels;
}

struct DepthwiseArgs {
  const uint8_t* src = nullptr;      // [images, height, width, channels]
  uint8_t* dst = nullptr;            // [images, out_height, out_width, channels]
  const int8_t* weights = nullptr;   // packed
  const float* scales = nullptr;     // packed
  const float* bias = nullptr;       // packed
  const uint8_t* outside = nullptr;  // [channels rounded up to blocks]: pixels beyond the borders
  int64_t images = 0;
  int64_t channels = 0;
  Windows windows = {};
  // What follows the scaled sums, in front of the rounding; none with an operand of its own.
  const EpilogueOp* ops = nullptr;
  int n_ops = 0;
  // What turns signed bytes into unsigned ones and back: 0x80, or 0 where they are unsigned.
  uint8_t src_flip = 0;
  uint8_t dst_flip = 0;
  // Of the result as an unsigned byte.
  int16_t zero = 0;
  uint8_t low = 0;
  uint8_t high = 255;
};

}  // namespace tenon::onednn::kernels
