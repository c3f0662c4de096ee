// SPDX-License-Identifier: Apache-2.0
#pragma once
// What attention and its gradient in f32 share: products with packed panels, and the exponentials
// of a row of scores.

#include "../attention_args.h"
#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

constexpr int kVectors = 2;  // of columns at once
// kRows x kVectors sums leave half of the registers.
constexpr int kRows = kCpuRegisters / 4;
constexpr int64_t kPanel = kAttentionPanel;
static_assert(kAttentionRows % kRows == 0 && kPanel % (kVectors * kLanes) == 0);

// Element [row, d] of a left operand lies at data[row * row_stride + d * step].
struct Left {
  const float* data;
  int64_t row_stride, step;
};

// sums[r] += a[r] b for kVectors registers of columns; b: [depth, kPanel or more columns].
static inline void add_products(
    const Left& left, const float* b, int64_t b_step, int64_t depth, Vf (&sums)[kRows][kVectors]) {
  const float* a = left.data;
  for (int64_t d = 0; d < depth; ++d, a += left.step, b += b_step) {
    Vf columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      columns[v] = load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vf word = splat(a[r * left.row_stride]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = fma(word, columns[v], sums[r][v]);
    }
  }
}

// dst[r] = factors[r] * a[r] b for panels of b, kRows rows at a time; all rows of a are readable.
static inline void product(const Left& left,
                           const float* b,
                           int64_t depth,
                           int64_t panels,
                           const float* factors,
                           float* dst,
                           int64_t dst_row,
                           int64_t rows) {
  for (int64_t panel = 0; panel < panels; ++panel, b += depth * kPanel) {
    for (int64_t column = 0; column < kPanel; column += kVectors * kLanes) {
      for (int64_t row = 0; row < rows; row += kRows) {
        Vf sums[kRows][kVectors] = {};
        add_products({left.data + row * left.row_stride, left.row_stride, left.step}, b + column,
                     kPanel, depth, sums);
        float* const at = dst + row * dst_row + panel * kPanel + column;
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v)
            store(at + r * dst_row + v * kLanes, sums[r][v] * splat(factors[row + r]));
        }
      }
    }
  }
}

// The scores of a row become exponentials; 1 / their sum.
static inline float exponentials(float* scores, const float* mask, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
  const int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  Vf top = splat(-kInfinity);
  if (whole < n) {
    for (int64_t i = n; i < padded; ++i)
      scores[i] = -kInfinity;
    if (mask != nullptr)
      store(scores + whole, load(scores + whole) + load_part(mask + whole, n - whole, 0.0F));
    top = load(scores + whole);
  }
  for (int64_t i = 0; i < whole; i += kLanes) {
    Vf x = load(scores + i);
    if (mask != nullptr) {
      x += load(mask + i);
      store(scores + i, x);
    }
    top = max_fast(x, top);
  }
  const float most = max_lanes(top);
  Vf sum = {};
  for (int64_t i = 0; i < padded; i += kLanes) {
    const Vf e = exp_nonpositive(load(scores + i) - most);
    store(scores + i, e);
    sum += e;
  }
  return 1.0F / sum_lanes(sum);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
