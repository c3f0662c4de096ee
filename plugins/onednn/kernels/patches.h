// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a convolution's window sees at each place, one row a place (im2col): of channels-last
// images, rows of [window height, window width, channels], zeros where the window is outside of the
// image.

#include "context.h"

namespace tenon::onednn::kernels {

struct PatchArgs {
  const void* src = nullptr;  // [images, height, width, pixel_bytes]
  void* dst = nullptr;  // [images, out_height, out_width, window height, window width, pixel_bytes]
  int64_t pixel_bytes = 0;
  int64_t images = 1;
  int64_t height = 1, width = 1;
  int64_t out_height = 1, out_width = 1;
  int64_t window_height = 1, window_width = 1;
  int64_t stride_y = 1, stride_x = 1;
  int64_t step_y = 1, step_x = 1;  // between the window's pixels
  int64_t pad_top = 0, pad_left = 0;
};

void patches(const Context& context, const PatchArgs& args);

}  // namespace tenon::onednn::kernels
