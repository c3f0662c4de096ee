// SPDX-License-Identifier: Apache-2.0
#include "attention_operands.hpp"

#include "product.hpp"

namespace tenon::onednn {

kernels::AttentionStrides attention_strides(const View& view, bool is_transposed) {
  const size_t rank = view.dims.size();
  auto stride = [&](size_t axis) { return view.dims[axis] == 1 ? 0 : view.strides[axis]; };
  kernels::AttentionStrides made;
  if (rank >= 4) made.outer = stride(rank - 4);
  if (rank >= 3) made.inner = stride(rank - 3);
  made.row = view.strides[rank - (is_transposed ? 1 : 2)];
  made.column = view.strides[rank - (is_transposed ? 2 : 1)];
  return made;
}

kernels::AttentionStrides mask_strides(const View& mask) {
  const size_t rank = mask.dims.size();
  auto stride = [&](size_t from_last) {
    if (from_last > rank || mask.dims[rank - from_last] == 1) return int64_t{0};
    return mask.strides[rank - from_last];
  };
  return {.outer = stride(4), .inner = stride(3), .row = stride(2), .column = stride(1)};
}

bool fits_keys(const Graph& graph, int mask, int64_t keys) {
  if (mask == kNone) return true;
  const Dims& dims = graph.value(mask).dims;
  return !dims.empty() && dims.size() <= 4 && dims.back() == keys;
}

View planned_rows(const Lowering& lowering, int value) {
  View rows = planned_real_matrix(lowering, value);
  if (rows.strides.back() != 1) rows.strides = row_major_strides(rows.dims);
  return rows;
}

}  // namespace tenon::onednn
