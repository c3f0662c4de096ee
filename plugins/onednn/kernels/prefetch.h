// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands of a head that comes next, into L2: their rows lie far from each other, where no
// hardware foresees them.

#include "attention_args.h"

namespace tenon::onednn::kernels {

// Rows of one pair of outer and inner index; what lies column by column is left out.
template <class T>
static inline void prefetch_rows(const T* data,
                                 const AttentionStrides& strides,
                                 int64_t outer,
                                 int64_t inner,
                                 int64_t rows,
                                 int64_t columns) {
  if (strides.column != 1) return;
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  const T* const from = data + outer * strides.outer + inner * strides.inner;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < columns; i += kLine)
      __builtin_prefetch(from + row * strides.row + i, 0, 2);
}

// q, k and v of attention or its gradient, by either kernel.
template <class Args>
static inline void prefetch_pair(const Args& args, int64_t outer, int64_t inner) {
  prefetch_rows(args.q, args.q_strides, outer, inner, args.rows, args.depth);
  prefetch_rows(args.k, args.k_strides, outer, inner, args.keys, args.depth);
  prefetch_rows(args.v, args.v_strides, outer, inner, args.keys, args.width);
}

}  // namespace tenon::onednn::kernels
