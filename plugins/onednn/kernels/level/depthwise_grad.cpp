// SPDX-License-Identifier: Apache-2.0
// The gradient of a depthwise convolution's weights; contract in ../depthwise_grad.h. Sums of
// several taps of one register of channels stay in registers while rows go by.

#include "elements.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

// Taps [row, row + kRows) x [column, column + kColumns) of the window, and channels [c, c + count).
struct Taps {
  int64_t row = 0, column = 0, c = 0;
  int count = kLanes;
  int skipped = 0;  // the first lanes of the register, which are another piece's
};

// Places [begin, end) of a row of dy at which kColumns columns of taps from this one on see pixels.
struct Inner {
  Inner(const Windows& w, int64_t column, int64_t columns) {
    const int64_t before = w.pad_left - column * w.step_x;
    const int64_t room = w.width - 1 + before - (columns - 1) * w.step_x;
    begin = before > 0 ? (before + w.stride_x - 1) / w.stride_x : 0;
    end = room < 0 ? 0 : room / w.stride_x + 1;
    if (end > w.out_width) end = w.out_width;
  }
  int64_t begin, end;
};

// kWhole: of kLanes channels.
template <class T, int kRows, int kColumns, bool kWhole>
void sum_taps_of(const DepthwiseGradArgs& args, const DepthwiseGradPiece& piece, const Taps& taps) {
  const Windows& w = args.windows;
  const int64_t pixel = args.channels, step = w.step_x * pixel, stride = w.stride_x * pixel;
  const Inner inner(w, taps.column, kColumns);
  const auto load_pixel = [&](const T* p) {
    if constexpr (kWhole) return load_lanes(p);
    return load_lanes_part(p, taps.count);
  };
  Vf sums[kRows][kColumns] = {};
  for (int64_t i = piece.lo; i < piece.hi; ++i) {
    const int64_t image = i / w.out_height, out_row = i % w.out_height;
    const T* lines[kRows];  // null: outside
    bool has_all = true;
    for (int r = 0; r < kRows; ++r) {
      const int64_t y = out_row * w.stride_y - w.pad_top + (taps.row + r) * w.step_y;
      const T* image_line =
          static_cast<const T*>(args.x) + (image * w.height + y) * w.width * pixel + taps.c;
      lines[r] = is_inside(y, w.height) ? image_line : nullptr;
      has_all = has_all && lines[r];
    }
    const T* dy = static_cast<const T*>(args.dy) + i * w.out_width * pixel + taps.c;
    for (int64_t x = 0; x < w.out_width; ++x) {
      int64_t left = x * w.stride_x - w.pad_left + taps.column * w.step_x;
      if (has_all && x == inner.begin) {
        for (int64_t at = left * pixel; x < inner.end; ++x, at += stride) {
          const Vf d = load_pixel(dy + x * pixel);
          for (int r = 0; r < kRows; ++r)
            for (int s = 0; s < kColumns; ++s)
              sums[r][s] = fma(d, load_pixel(lines[r] + at + s * step), sums[r][s]);
        }
        if (x == w.out_width) break;
        left = x * w.stride_x - w.pad_left + taps.column * w.step_x;
      }
      const Vf d = load_pixel(dy + x * pixel);
      for (int r = 0; r < kRows; ++r)
        for (int s = 0; s < kColumns; ++s)
          if (lines[r] && is_inside(left + s * w.step_x, w.width))
            sums[r][s] = fma(d, load_pixel(lines[r] + left * pixel + s * step), sums[r][s]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int s = 0; s < kColumns; ++s) {
      const int64_t tap = (taps.row + r) * w.window_width + taps.column + s;
      float* to = piece.sums + tap * args.channels + taps.c;
      if (kWhole && taps.skipped == 0) {
        store(to, sums[r][s]);
        continue;
      }
      for (int64_t lane = taps.skipped; lane < taps.count; ++lane)
        to[lane] = sums[r][s][lane];
    }
}

template <class T, int kRows, int kColumns>
void sum_taps(const DepthwiseGradArgs& args,
              const DepthwiseGradPiece& piece,
              int64_t row,
              int64_t column) {
  int64_t c = piece.first;
  for (; c + kLanes <= piece.end; c += kLanes)
    sum_taps_of<T, kRows, kColumns, true>(args, piece, {row, column, c});
  if (c == piece.end) return;
  const auto left = static_cast<int>(piece.end - c);
  if (piece.end >= kLanes)  // a whole register, of which the first lanes are known already
    sum_taps_of<T, kRows, kColumns, true>(args, piece,
                                          {row, column, piece.end - kLanes, kLanes, kLanes - left});
  else
    sum_taps_of<T, kRows, kColumns, false>(args, piece, {row, column, c, left});
}

// A row of taps by as many at once as there are registers for.
template <class T>
void sum_row(const DepthwiseGradArgs& args, const DepthwiseGradPiece& piece, int64_t row) {
  int64_t column = 0;
  const int64_t width = args.windows.window_width;
  for (; column + 5 <= width; column += 5)
    sum_taps<T, 1, 5>(args, piece, row, column);
  for (; column + 2 <= width; column += 2)
    sum_taps<T, 1, 2>(args, piece, row, column);
  if (column < width) sum_taps<T, 1, 1>(args, piece, row, column);
}

template <class T>
void sum_all(const DepthwiseGradArgs& args, const DepthwiseGradPiece& piece) {
  const Windows& w = args.windows;
  if (w.window_height == 3 && w.window_width == 3) return sum_taps<T, 3, 3>(args, piece, 0, 0);
  for (int64_t row = 0; row < w.window_height; ++row)
    sum_row<T>(args, piece, row);
}

}  // namespace

void depthwise_grad_piece(const DepthwiseGradArgs& args, const DepthwiseGradPiece& piece) {
  if (args.type == ElementType::kBf16)
    sum_all<Bf16>(args, piece);
  else
    sum_all<float>(args, piece);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
