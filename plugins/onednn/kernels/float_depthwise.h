// SPDX-License-Identifier: Apache-2.0
#pragma once
// Depthwise convolution of f32 or bf16 images, channels-last: each channel has a window of its own,
// of any size, stride and dilation. Sums and weights are f32; the result is rounded once:
//
//   y = clip(ops(sum_taps(x * w) + bias[c]), low, high)
//
// Square windows of 3, 5 and 7 with one stride of 1 or 2 for both axes keep the sums of several
// results in registers, so that a pixel is read and widened once for all that see it; others are
// right but read it for each. NaN stays NaN. The result does not depend on the number of threads.

#include "context.h"
#include "float_depthwise_args.h"

namespace tenon::onednn::kernels {

// Windows whose results share pixels.
constexpr bool shares_float_depthwise(const Windows& w) {
  const int64_t size = w.window_width;
  return w.window_height == size && (size == 3 || size == 5 || size == 7) &&
         w.stride_y == w.stride_x && w.stride_x <= 2 && w.step_x == 1 && w.step_y == 1;
}

void float_depthwise(const Context& context, const FloatDepthwiseArgs& args);

}  // namespace tenon::onednn::kernels
