// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the depthwise convolution, as level/ sees them too; contract in depthwise.h.

#include <cstdint>

namespace tenon::onednn::kernels {

// Weights, scales and bias lie in blocks of 32 channels, in the order in which bytes of four pixels
// become 32-bit lanes by unpacking within 128 bits.
constexpr int64_t kDepthwiseBlock = 32;
constexpr int64_t kDepthwiseTaps = 3;  // along each axis
constexpr int64_t depthwise_lane(int64_t channel) {
  return channel % 16 / 4 * 8 + channel % 32 / 16 * 4 + channel % 4;
}
// Bytes of one block's weights: [shift][row][lane][4], where of the 4 pixels of a window the taps
// have the first three, or the last three when shifted.
constexpr int64_t kDepthwiseWeightBytes = 2 * kDepthwiseTaps * kDepthwiseBlock * 4;

struct DepthwiseArgs {
  const uint8_t* src = nullptr;      // [images, height, width, channels]
  uint8_t* dst = nullptr;            // [images, out_height, out_width, channels]
  const int8_t* weights = nullptr;   // packed
  const float* scales = nullptr;     // packed
  const float* bias = nullptr;       // packed
  const uint8_t* outside = nullptr;  // [channels rounded up to blocks]: pixels beyond the borders
  int64_t images = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t stride = 1;  // of both axes: 1 or 2
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  // What turns signed bytes into unsigned ones and back: 0x80, or 0 where they are unsigned.
  uint8_t src_flip = 0;
  uint8_t dst_flip = 0;
  // Of the result as an unsigned byte.
  int16_t zero = 0;
  uint8_t low = 0;
  uint8_t high = 255;
};

}  // namespace tenon::onednn::kernels
