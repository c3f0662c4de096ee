// SPDX-License-Identifier: Apache-2.0
#pragma once
// Windows over each channel alone, of elements of any type: where the pixels and the results of a
// tile lie, and how tiles cover a row of results. Args has src, dst, outside, channels and windows,
// as DepthwiseArgs and FloatDepthwiseArgs; S is a square window whose size and strides the compiler
// knows, with the columns of its tiles.

#include "../windows.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

template <class T, class Args>
const T* pixel(const Args& args, int64_t image, int64_t y, int64_t x) {
  const Windows& w = args.windows;
  if (!is_inside(y, w.height) || !is_inside(x, w.width)) return static_cast<const T*>(args.outside);
  return static_cast<const T*>(args.src) + ((image * w.height + y) * w.width + x) * args.channels;
}

template <class T, class Args>
T* result(const Args& args, int64_t image, int64_t y, int64_t x) {
  const Windows& w = args.windows;
  return static_cast<T*>(args.dst) + ((image * w.out_height + y) * w.out_width + x) * args.channels;
}

// The rows of pixels under kRows rows of results, and these; a row of pixels outside of the image
// is one pixel again and again.
template <class T, class S, int kRows>
struct TileRows {
  static constexpr int kPixelRows = (kRows - 1) * S::kStrideY + S::kTaps;
  const T* pixels[kPixelRows];
  int64_t step[kPixelRows];
  T* results[kRows];

  template <class Args>
  TileRows(const Args& args, int64_t image, int64_t y) {
    for (int i = 0; i < kPixelRows; ++i) {
      const int64_t line = y * S::kStrideY - args.windows.pad_top + i;
      pixels[i] = pixel<T>(args, image, line, 0);
      step[i] = is_inside(line, args.windows.height) ? args.channels : 0;
    }
    for (int r = 0; r < kRows; ++r)
      results[r] = result<T>(args, image, y + r, 0);
  }
};

// kRows x kColumns results and what their windows see. kPlaced: pixels of a row that are placed,
// those behind the last seen one being that one; 0: as many as are seen.
template <class T, class S, int kRows, int kColumns, int kPlaced = 0>
struct WindowTile {
  static constexpr int kPixelRows = TileRows<T, S, kRows>::kPixelRows;
  static constexpr int kSeen = (kColumns - 1) * S::kStrideX + S::kTaps;  // pixels of a row
  const T* pixels[kPixelRows][kPlaced > 0 ? kPlaced : kSeen];
  T* results[kRows * kColumns];

  template <class Args>
  void place(const Args& args, const TileRows<T, S, kRows>& rows, int64_t x) {
    const int64_t left = x * S::kStrideX - args.windows.pad_left;
    const bool is_whole = left >= 0 && left + kSeen <= args.windows.width;
    for (int i = 0; i < kPixelRows; ++i) {
      for (int k = 0; k < kSeen; ++k) {
        const bool is_pixel = is_whole || is_inside(left + k, args.windows.width);
        pixels[i][k] = is_pixel ? rows.pixels[i] + (left + k) * rows.step[i]
                                : static_cast<const T*>(args.outside);
      }
      for (int k = kSeen; k < kPlaced; ++k)
        pixels[i][k] = pixels[i][kSeen - 1];
    }
    for (int r = 0; r < kRows; ++r)
      for (int q = 0; q < kColumns; ++q)
        results[r * kColumns + q] = rows.results[r] + (x + q) * args.channels;
  }
};

// run.operator()<columns>(x) for each tile of a row of so many results; some of them are in two.
template <class S, class Run>
void each_tile(int64_t width, const Run& run) {
  int64_t x = 0;
  for (; x + S::kColumns <= width; x += S::kColumns)
    run.template operator()<S::kColumns>(x);
  if (x < width && width >= S::kColumns)
    return run.template operator()<S::kColumns>(width - S::kColumns);
  for (; x < width; ++x)
    run.template operator()<1>(x);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
