// SPDX-License-Identifier: Apache-2.0
#pragma once
// The places of a convolution's window on channels-last images, and what it sees at each.

#include <cstdint>

namespace tenon::onednn::kernels {

struct Windows {
  int64_t height = 1, width = 1;  // of an image, in pixels
  int64_t out_height = 1, out_width = 1;
  int64_t window_height = 1, window_width = 1;
  int64_t stride_y = 1, stride_x = 1;
  int64_t step_y = 1, step_x = 1;  // between the window's pixels
  int64_t pad_top = 0, pad_left = 0;
};

// [images, height, width, pixel]; `channels` of each pixel are read. A place is a row of
// [window_height, window_width, channels] quantized values.
struct ConvWindows : Windows {
  int64_t pixel = 0;  // quantized values from one pixel to the next
  int64_t channels = 0;
};

constexpr int64_t kOutside = -1;

constexpr bool is_inside(int64_t i, int64_t extent) {
  return i >= 0 && i < extent;
}

// What the window sees with its first pixel at (top, left), in its order: see(first, n) for n
// pixels side by side from pixel `first` of the image, or outside of it (kOutside).
template <class See>
void walk_window(const Windows& w, int64_t top, int64_t left, const See& see) {
  const int64_t last = left + (w.window_width - 1) * w.step_x;
  const bool is_run = w.step_x == 1 && left >= 0 && last < w.width;
  for (int64_t tap = 0; tap < w.window_height; ++tap) {
    const int64_t y = top + tap * w.step_y;
    if (!is_inside(y, w.height)) {
      see(kOutside, w.window_width);
    } else if (is_run) {
      see(y * w.width + left, w.window_width);
    } else {
      for (int64_t x = left; x <= last; x += w.step_x)
        see(is_inside(x, w.width) ? y * w.width + x : kOutside, int64_t{1});
    }
  }
}

}  // namespace tenon::onednn::kernels
