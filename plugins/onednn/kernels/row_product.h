// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stack of products of one row with a matrix of f32, which is read once, as it lies: as fast as
// its memory.
//
//   dst[i, n] = sum_k a[a_starts[i] + k * a_k] * b[b_starts[i] + k * b_k + n * b_column]
//
// Along columns that lie side by side, eight products at a time are added to the sums; along k,
// lanes have sums of their own. Bound against exact arithmetic: (k / 8 + 8) eps sum_k |a| |b|, eps
// = 2^-24. The bits of an element depend neither on the others nor on the number of threads.

#include <span>

#include "context.h"
#include "row_product_args.h"

namespace tenon::onednn::kernels {

// matrix: of the first product, without starts; dst is dense, and overlaps neither operand.
struct RowProductArgs {
  RowProductPiece matrix = {};
  std::span<const int64_t> a_starts = {}, b_starts = {};  // in elements; one of each a product
};

void row_product(const Context& context, const RowProductArgs& args);

}  // namespace tenon::onednn::kernels
