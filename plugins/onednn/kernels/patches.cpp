// SPDX-License-Identifier: Apache-2.0
#include "patches.h"

#include <cstring>

namespace tenon::onednn::kernels {

namespace {

bool is_inside(int64_t i, int64_t extent) {
  return i >= 0 && i < extent;
}

// One row of a window; line: the image's row under it, or nullptr outside.
void copy_line(const PatchArgs& args, const char* line, int64_t left, char* to) {
  const int64_t last = left + (args.window_width - 1) * args.step_x;
  if (line == nullptr) {
    std::memset(to, 0, static_cast<size_t>(args.window_width * args.pixel_bytes));
  } else if (args.step_x == 1 && left >= 0 && last < args.width) {
    std::memcpy(to, line + left * args.pixel_bytes,
                static_cast<size_t>(args.window_width * args.pixel_bytes));
  } else {
    for (int64_t x = left; x <= last; x += args.step_x, to += args.pixel_bytes) {
      if (is_inside(x, args.width))
        std::memcpy(to, line + x * args.pixel_bytes, static_cast<size_t>(args.pixel_bytes));
      else
        std::memset(to, 0, static_cast<size_t>(args.pixel_bytes));
    }
  }
}

}  // namespace

void patches(const Context& context, const PatchArgs& args) {
  const int64_t line_bytes = args.window_width * args.pixel_bytes;
  const int64_t row_bytes = args.out_width * args.window_height * line_bytes;
  parallel_for(
      context.parallel, args.images * args.out_height, grain_rows(2 * row_bytes),
      [&](int64_t lo, int64_t hi) {
        for (int64_t row = lo; row < hi; ++row) {
          const int64_t top = row % args.out_height * args.stride_y - args.pad_top;
          const char* image = static_cast<const char*>(args.src) +
                              row / args.out_height * args.height * args.width * args.pixel_bytes;
          char* to = static_cast<char*>(args.dst) + row * row_bytes;
          for (int64_t x = 0; x < args.out_width; ++x) {
            for (int64_t tap = 0; tap < args.window_height; ++tap, to += line_bytes) {
              const int64_t y = top + tap * args.step_y;
              const char* line =
                  is_inside(y, args.height) ? image + y * args.width * args.pixel_bytes : nullptr;
              copy_line(args, line, x * args.stride_x - args.pad_left, to);
            }
          }
        }
      });
}

}  // namespace tenon::onednn::kernels
