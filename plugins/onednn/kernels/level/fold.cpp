// SPDX-License-Identifier: Apache-2.0
// Windows added where they overlap; contract in ../fold.h. Results of a row that are `stride` apart
// see the same numbers of the window: each of these phases is a sum of rows as they lie, and the
// phases are then interleaved.

#include "../fold_args.h"
#include "elements.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int64_t kPositions = 256;  // of each phase at once

void add_row(const float* src, int64_t n, float* sums) {
  each_register(n, [&](int64_t i, int64_t lanes) {
    store_some(sums + i, load_some(sums + i, lanes) + load_some(src + i, lanes), lanes);
  });
}

// dst[j * stride + phase] = phases[phase][j] for all results below n.
template <int64_t fixed_stride>
void interleave(const float* phases, int64_t any_stride, int64_t n, float* dst) {
  const int64_t stride = fixed_stride > 0 ? fixed_stride : any_stride;
  const int64_t whole = n / stride;
  for (int64_t j = 0; j < whole; ++j)
    for (int64_t phase = 0; phase < stride; ++phase)
      dst[j * stride + phase] = phases[phase * kPositions + j];
  for (int64_t i = whole * stride; i < n; ++i)
    dst[i] = phases[i % stride * kPositions + whole];
}

// Which positions of an axis see result `to` through the window's place w: at most one.
bool find_position(const FoldArgs& args, int axis, int64_t to, int64_t w, int64_t* from) {
  const int64_t at = to + args.padding[axis] - w * args.dilations[axis];
  *from = at / args.strides[axis];
  return at >= 0 && at % args.strides[axis] == 0 && *from < args.from[axis];
}

// Adds to each phase what the window's places of the last axis see; line: the columns of the places
// of the two axes in front, [window[2], from[0], from[1], from[2]] at one position of those.
void add_line(const FoldArgs& args, const float* line, int64_t first, int64_t n, float* phases) {
  const int64_t pitch = args.from[0] * args.from[1] * args.from[2];
  const int64_t stride = args.strides[2];
  for (int64_t w = 0; w < args.window[2]; ++w) {
    const int64_t at = w * args.dilations[2] - args.padding[2];
    const int64_t phase = (at % stride + stride) % stride;
    const int64_t shift = (at - phase) / stride;  // of results against positions
    int64_t lo = first > shift ? first : shift;
    int64_t hi = first + n < args.from[2] + shift ? first + n : args.from[2] + shift;
    if (lo < hi)
      add_row(line + w * pitch + lo - shift, hi - lo, phases + phase * kPositions + lo - first);
  }
}

// `n` positions of each phase from `first` on.
void add_windows(const FoldArgs& args, int64_t row, int64_t first, int64_t n, float* phases) {
  const int64_t t1 = row % args.to[1], t0 = row / args.to[1] % args.to[0];
  const int64_t plane = row / args.to[1] / args.to[0];  // image and channel
  const int64_t pitch = args.window[2] * args.from[0] * args.from[1] * args.from[2];
  for (int64_t w0 = 0; w0 < args.window[0]; ++w0) {
    int64_t f0 = 0, f1 = 0;
    if (!find_position(args, 0, t0, w0, &f0)) continue;
    for (int64_t w1 = 0; w1 < args.window[1]; ++w1) {
      if (!find_position(args, 1, t1, w1, &f1)) continue;
      const int64_t place = (plane * args.window[0] + w0) * args.window[1] + w1;
      const float* line = args.columns + place * pitch + (f0 * args.from[1] + f1) * args.from[2];
      add_line(args, line, first, n, phases);
    }
  }
}

}  // namespace

void fold_rows(const FoldArgs& args, int64_t lo, int64_t hi) {
  alignas(64) float phases[kMostFoldStride * kPositions];
  const int64_t stride = args.strides[2];
  auto* const put = stride == 1   ? interleave<1>
                    : stride == 2 ? interleave<2>
                    : stride == 4 ? interleave<4>
                                  : interleave<0>;
  for (int64_t row = lo; row < hi; ++row) {
    const int64_t channel = row / args.to[1] / args.to[0] % args.channels;
    const Vf bias = splat(args.bias == nullptr ? 0.0F : args.bias[channel]);
    float* const dst = args.dst + row * args.to[2];
    for (int64_t first = 0; first * stride < args.to[2]; first += kPositions) {
      const int64_t left = args.to[2] - first * stride;
      const int64_t positions = (left + stride - 1) / stride;
      const int64_t n = positions < kPositions ? positions : kPositions;
      for (int64_t phase = 0; phase < stride; ++phase)
        for (int64_t i = 0; i < n; i += kLanes)
          store(phases + phase * kPositions + i, bias);
      add_windows(args, row, first, n, phases);
      put(phases, stride, left < n * stride ? left : n * stride, dst + first * stride);
    }
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
