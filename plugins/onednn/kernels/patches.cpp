// SPDX-License-Identifier: Apache-2.0
#include "patches.h"

#include <cstring>

namespace tenon::onednn::kernels {

namespace {

// One row of places; top: where the window begins.
void copy_row(const PatchArgs& args, const char* image, int64_t top, char* to) {
  const Windows& w = args.windows;
  auto copy = [&](int64_t first, int64_t n) {
    const auto bytes = static_cast<size_t>(n * args.pixel_bytes);
    if (first == kOutside)
      std::memset(to, 0, bytes);
    else
      std::memcpy(to, image + first * args.pixel_bytes, bytes);
    to += bytes;
  };
  for (int64_t x = 0; x < w.out_width; ++x)
    walk_window(w, top, x * w.stride_x - w.pad_left, copy);
}

}  // namespace

void patches(const Context& context, const PatchArgs& args) {
  const Windows& w = args.windows;
  const int64_t image_bytes = w.height * w.width * args.pixel_bytes;
  const int64_t row_bytes = w.out_width * w.window_height * w.window_width * args.pixel_bytes;
  parallel_for(context.parallel, args.images * w.out_height, grain_rows(2 * row_bytes),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t row = lo; row < hi; ++row)
                   copy_row(args,
                            static_cast<const char*>(args.src) + row / w.out_height * image_bytes,
                            row % w.out_height * w.stride_y - w.pad_top,
                            static_cast<char*>(args.dst) + row * row_bytes);
               });
}

}  // namespace tenon::onednn::kernels
