// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of the left operand as tiles load them: where they lie, or copied to a buffer in L1 where
// they do not fill whole steps of k or are what a convolution's windows see.

#include <cstring>

#include <immintrin.h>

#include "../tile_product_args.h"
#include "line_groups.h"
#include "tap_planes.h"
#include "tiles.h"

namespace tenon::onednn::kernels::amx {

// The rows of one tile.
struct Half {
  const char* at;
  int64_t stride;  // bytes from a row to the next one
  int64_t step;    // and from a step of k to the next one
};
struct Left {
  Half upper, lower;
  Left(const char* at, int64_t stride)
      : upper{at, stride, kTileDepth}, lower{at + 16 * stride, stride, kTileDepth} {}
  Left(const Half& upper_half, const Half& lower_half) : upper(upper_half), lower(lower_half) {}
};

class LeftRows {
 public:
  // depth: bytes of a row in whole steps of k; row_bytes: those that are numbers.
  LeftRows(const TileProductArgs& args, int64_t row_bytes, int64_t depth, bool has_integers)
      : args_(args),
        row_bytes_(row_bytes),
        depth_(depth),
        has_integers_(has_integers),
        groups_(args.lines, args.zero),
        planes_(args.taps, args.zero) {}

  // Before the rows of a unit are taken: what their windows see.
  void begin(const TileUnit& unit) {
    if (args_.row == TileRow::kLines) {
      const Lines lines(args_.lines, unit.row);
      first_row_ = unit.row - lines.first * args_.lines.out_width;
      groups_.make(args_.a, lines.image, lines.first, unit.n_rows / args_.lines.out_width,
                   buffers_[0]);
    }
    if (args_.row == TileRow::kTaps) {
      const TileTaps& w = args_.taps;
      const Lines lines(w, unit.row);
      planes_.make(
          static_cast<const char*>(args_.a) + lines.image * w.height * w.width * w.pixel_bytes,
          lines.first, unit.lines, buffers_[0]);
    }
  }
  // Between the taps of a window; null where rows are of one run.
  const int64_t* jumps() const { return args_.row == TileRow::kTaps ? planes_.jumps() : nullptr; }

  // Rows [row, row + count), or places of the unit of rows of taps, until the call after the next
  // one; count is kTileRows at most. Rows are best taken a block ahead: tiles that load what was
  // just stored wait for it.
  Left take(int64_t row, int count) {
    if (args_.row == TileRow::kLines) return take_windows(row - first_row_, count);
    if (args_.row == TileRow::kTaps) return Left(planes_.at(row), args_.taps.pixel_bytes);
    rows_ = buffers_[turn_ ^= 1];
    if (args_.row == TileRow::kWindow) return gather(row, count);
    const char* const from = static_cast<const char*>(args_.a) + row * args_.a_stride;
    // What lies behind a row may be NaN, or no memory at all.
    const bool is_last = row + count == args_.m;
    return row_bytes_ != depth_ && (!has_integers_ || is_last) ? copy(from, count)
                                                               : Left(from, args_.a_stride);
  }

 private:
  struct Lines {  // of the result
    int64_t image, first;
    Lines(const Windows& w, int64_t row)
        : image(row / w.out_width / w.out_height), first(row / w.out_width % w.out_height) {}
  };

  Left copy(const char* from, int count) {
    const auto bytes = static_cast<size_t>(row_bytes_);
    for (int row = 0; row < count; ++row) {
      char* const to = rows_ + row * depth_;
      std::memcpy(to, from + row * args_.a_stride, bytes);
      std::memset(to + bytes, 0, static_cast<size_t>(depth_ - row_bytes_));
    }
    return Left(rows_, depth_);
  }

  // Row: from the first line of the image on.
  Left take_windows(int64_t row, int count) {
    turn_ ^= 1;
    const Half upper = half(row, count < 16 ? count : 16, copies(2 * turn_));
    return {upper, count > 16 ? half(row + 16, count - 16, copies(2 * turn_ + 1)) : upper};
  }
  // In one line of the result the windows lie side by side; those of two lines are copied.
  Half half(int64_t row, int count, char* to) {
    const TileLines& w = args_.lines;
    const int64_t x = row % w.out_width;
    if (x + count <= w.out_width)
      return {groups_.at(row / w.out_width, x), kTileDepth, groups_.bytes()};
    for (int64_t i = 0; i < count; ++i) {
      const char* from = groups_.at((row + i) / w.out_width, (row + i) % w.out_width);
      for (int64_t step = 0; step < w.steps; ++step)
        std::memcpy(to + i * depth_ + step * kTileDepth, from + step * groups_.bytes(), kTileDepth);
    }
    return {to, depth_, kTileDepth};
  }
  char* copies(int i) {
    return buffers_[0] + kLineGroupBytes + i * 16 * kMostLineSteps * kTileDepth;
  }

  // The right operand is zero where rows have no numbers, so that any byte may stand there.
  Left gather(int64_t first, int count) {
    const ConvWindows& w = args_.windows;
    int64_t x = first % w.out_width;
    int64_t y = first / w.out_width % w.out_height;
    int64_t image = first / (w.out_width * w.out_height);
    for (int row = 0; row < count;) {
      const char* const pixels =
          static_cast<const char*>(args_.a) + image * w.height * w.width * w.pixel;
      const int64_t top = y * w.stride_y - w.pad_top;
      const int64_t left = x * w.stride_x - w.pad_left;
      char* to = rows_ + row * depth_;
      const int64_t run = inner_windows(top, left, count - row, w.out_width - x);
      if (run > 0)
        see_inner(pixels + (top * w.width + left) * w.pixel, run, to);
      else
        walk_window(w, top, left,
                    [&](int64_t pixel, int64_t n) { to = see(pixels, pixel, n, to); });
      row += static_cast<int>(run > 0 ? run : 1);
      x += run > 0 ? run : 1;
      if (x < w.out_width) continue;
      x = 0;
      if (++y < w.out_height) continue;
      y = 0;
      ++image;
    }
    return Left(rows_, depth_);
  }

  // How many windows side by side, from this one on, lie inside the image.
  int64_t inner_windows(int64_t top, int64_t left, int64_t rows, int64_t in_line) const {
    const ConvWindows& w = args_.windows;
    const int64_t bottom = top + (w.window_height - 1) * w.step_y;
    const int64_t space = w.width - left - w.window_width;
    const bool is_inner = w.step_x == 1 && w.pixel == w.channels && top >= 0 && left >= 0 &&
                          bottom < w.height && space >= 0;
    if (!is_inner) return 0;
    const int64_t fit = space / w.stride_x + 1;
    const int64_t most = rows < in_line ? rows : in_line;
    return most < fit ? most : fit;
  }
  void see_inner(const char* from, int64_t windows, char* to) const {
    const ConvWindows& w = args_.windows;
    const int64_t bytes = w.window_width * w.pixel;
    const int64_t step = w.stride_x * w.pixel;
    const int64_t line = w.step_y * w.width * w.pixel;
    for (int64_t tap = 0; tap < w.window_height; ++tap, from += line, to += bytes) {
      if (bytes <= kHalf)
        each_window<kHalf>(from, step, bytes, windows, to);
      else
        each_window<kRegister>(from, step, bytes, windows, to);
    }
  }
  // Registers of `width` bytes: twice as many short ones are stored in the same time.
  template <int64_t width>
  void each_window(const char* from, int64_t step, int64_t bytes, int64_t windows, char* to) const {
    for (int64_t at = 0; at < bytes; at += width) {
      const __mmask64 mask = first_bytes(bytes - at);
      const char* in = from + at;
      char* out = to + at;
      for (int64_t i = 0; i < windows; ++i, in += step, out += depth_) {
        if constexpr (width == kHalf)
          _mm256_mask_storeu_epi8(out, static_cast<__mmask32>(mask),
                                  _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), in));
        else
          _mm512_mask_storeu_epi8(out, mask, _mm512_maskz_loadu_epi8(mask, in));
      }
    }
  }

  // n pixels side by side; returns where the next ones go.
  char* see(const char* pixels, int64_t pixel, int64_t n, char* to) const {
    const ConvWindows& w = args_.windows;
    if (pixel == kOutside) {
      std::memset(to, args_.zero, static_cast<size_t>(n * w.channels));
      return to + n * w.channels;
    }
    const char* from = pixels + pixel * w.pixel;
    for (int64_t i = 0; i < n; ++i, from += w.pixel, to += w.channels)
      each_window<kRegister>(from, 0, w.channels, 1, to);
    return to;
  }
  static __mmask64 first_bytes(int64_t n) {
    return n >= kRegister ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
  }

  static constexpr int64_t kRegister = sizeof(__m512i);
  static constexpr int64_t kHalf = sizeof(__m256i);

  const TileProductArgs& args_;
  int64_t row_bytes_;
  int64_t depth_;
  bool has_integers_;
  LineGroups groups_;
  TapPlanes planes_;
  int64_t first_row_ = 0;  // of the image whose lines are seen
  char* rows_ = nullptr;
  int turn_ = 0;
  alignas(64) char buffers_[2][kTileRows * kMostTileTail];
  static_assert(kLineGroupBytes + 4 * 16 * kMostLineSteps * kTileDepth <= sizeof buffers_);
  static_assert(kTapBytes <= sizeof buffers_);
};

}  // namespace tenon::onednn::kernels::amx
