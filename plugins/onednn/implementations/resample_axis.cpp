// SPDX-License-Identifier: Apache-2.0
#include "resample_axis.hpp"

#include <algorithm>

namespace tenon::onednn {
namespace {

// The last axis: each result gathers its taps.
void gather_row(const ResampleAxis& axis, const float* src, float* dst) {
  if (axis.taps == 1) {
    for (int64_t i = 0; i < axis.out; ++i)
      dst[i] = axis.at[i] < 0 ? axis.extrapolation : src[axis.at[i]];
    return;
  }
  const int64_t* at = axis.at;
  const float* weight = axis.weight;
  for (int64_t i = 0; i < axis.out; ++i, at += axis.taps, weight += axis.taps) {
    float sum = at[0] < 0 ? axis.extrapolation : 0.0F;
    for (int64_t tap = 0; tap < axis.taps && at[0] >= 0; ++tap)
      sum += weight[tap] == 0 ? 0.0F : weight[tap] * src[at[tap]];
    dst[i] = sum;
  }
}

// One result row of `inner` elements.
void combine_rows(const ResampleAxis& axis, int64_t i, const float* src, float* dst) {
  const int64_t* at = axis.at + i * axis.taps;
  const float* weight = axis.weight + i * axis.taps;
  const int64_t inner = axis.inner;
  if (at[0] < 0) {
    std::fill_n(dst, inner, axis.extrapolation);
    return;
  }
  bool is_first = true;
  for (int64_t tap = 0; tap < axis.taps; ++tap) {
    const float w = weight[tap];
    if (w == 0) continue;
    const float* from = src + at[tap] * inner;
    if (is_first && w == 1) {
      std::copy_n(from, inner, dst);
    } else if (is_first) {
      for (int64_t c = 0; c < inner; ++c)
        dst[c] = w * from[c];
    } else {
      for (int64_t c = 0; c < inner; ++c)
        dst[c] += w * from[c];
    }
    is_first = false;
  }
  if (is_first) std::fill_n(dst, inner, 0.0F);
}

}  // namespace

void resample_axis(const kernels::Context& context,
                   const ResampleAxis& axis,
                   const float* src,
                   float* dst) {
  if (axis.inner == 1) {
    kernels::parallel_for(context.parallel, axis.outer,
                          kernels::grain_rows(axis.out * 8 * axis.taps),
                          [&](int64_t lo, int64_t hi) {
                            for (int64_t row = lo; row < hi; ++row)
                              gather_row(axis, src + row * axis.in, dst + row * axis.out);
                          });
    return;
  }
  kernels::parallel_for(
      context.parallel, axis.outer * axis.out,
      kernels::grain_rows(axis.inner * 4 * (axis.taps + 1)), [&](int64_t lo, int64_t hi) {
        for (int64_t row = lo; row < hi; ++row)
          combine_rows(axis, row % axis.out, src + row / axis.out * axis.in * axis.inner,
                       dst + row * axis.inner);
      });
}

}  // namespace tenon::onednn
