// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a convolution's window sees at each place, one row a place (im2col): of channels-last
// images, rows of [window height, window width, channels], zeros where the window is outside of the
// image.

#include "context.h"
#include "windows.h"

namespace tenon::onednn::kernels {

struct PatchArgs {
  const void* src = nullptr;  // [images, height, width, pixel_bytes]
  void* dst = nullptr;  // [images, out_height, out_width, window height, window width, pixel_bytes]
  int64_t pixel_bytes = 0;
  int64_t images = 1;
  Windows windows = {};
};

void patches(const Context& context, const PatchArgs& args);

}  // namespace tenon::onednn::kernels
