// SPDX-License-Identifier: Apache-2.0
#pragma once
// Depthwise convolution of 8-bit images, channels-last: each channel has a window of its own, of
// any size, stride and dilation. Sums are exact in i32; the result is rounded once:
//
//   y = clip(round(ops(sum_taps(x * w) * scales[c] + bias[c])) + zero, low, high)
//
// x counts as unsigned, so a signed source's 128 and its zero point belong into the bias.
// With AVX-512 VNNI four pixels of a row become one 32-bit lane per channel, and one instruction
// multiplies up to four of a row's taps, for two or four results side by side, and with 3 x 3 two
// below each other. So it is for windows of 3 x 3 and 5 x 5 with strides of 1 and 2; others are
// right but slow.

#include "context.h"
#include "depthwise_args.h"

namespace tenon::onednn::kernels {

// Whether this CPU and level have the instructions; elsewhere it is right but slow.
bool has_fast_depthwise(const Context& context);

constexpr int64_t depthwise_blocks(int64_t channels) {
  return (channels + kDepthwiseBlock - 1) / kDepthwiseBlock;
}
// weights: [channels, window_height, window_width]
// -> packed: [blocks * depthwise_weight_bytes(windows)]
void pack_depthwise_weights(const int8_t* weights,
                            int64_t channels,
                            const Windows& windows,
                            int8_t* packed);
// Where the packed scale and bias of a channel lie.
constexpr int64_t depthwise_place(int64_t channel) {
  return channel / kDepthwiseBlock * kDepthwiseBlock + depthwise_lane(channel);
}

void depthwise(const Context& context, const DepthwiseArgs& args);

}  // namespace tenon::onednn::kernels
