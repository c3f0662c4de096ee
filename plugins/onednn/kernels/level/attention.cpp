// SPDX-License-Identifier: Apache-2.0
// Some rows of attention: scores, exponentials, context; contract in ../attention.h.

#include "attention_products.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

void attention_rows(const AttentionRows& rows) {
  const AttentionArgs& args = rows.args;
  auto at = [&](const AttentionStrides& strides, int64_t row) {
    return rows.outer * strides.outer + rows.inner * strides.inner + row * strides.row;
  };
  // Whole blocks of rows are multiplied: those behind the last one are copies of it.
  const float* queries = args.q + at(args.q_strides, rows.first);
  int64_t query_row = args.q_strides.row;
  if (rows.count < kAttentionRows || args.q_strides.column != 1) {
    for (int64_t r = 0; r < kAttentionRows; ++r) {
      const int64_t row = rows.first + (r < rows.count ? r : rows.count - 1);
      const Source query{args.q + at(args.q_strides, row), ElementType::kF32};
      load_strided(query, 0, args.q_strides.column, args.depth, rows.queries + r * args.depth);
    }
    queries = rows.queries;
    query_row = args.depth;
  }
  float factors[kAttentionRows];
  for (float& factor : factors)
    factor = args.scale;
  const int64_t count = (rows.count + kRows - 1) / kRows * kRows;
  product({queries, query_row, 1}, rows.keys, args.depth, (args.keys + kPanel - 1) / kPanel,
          factors, rows.scores, rows.pitch, count);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = rows.first + (r < rows.count ? r : rows.count - 1);
    const float* mask = args.mask == nullptr ? nullptr : args.mask + at(args.mask_strides, row);
    factors[r] = exponentials(rows.scores + r * rows.pitch, mask, args.keys);
  }
  for (int64_t column = 0; column < args.width; column += kPanel) {
    const int64_t left = args.width - column;
    const int64_t width = left < kPanel ? left : kPanel;
    alignas(64) float context[kAttentionRows * kPanel];
    product({rows.scores, rows.pitch, 1}, rows.values + column * args.keys, args.keys, 1, factors,
            context, kPanel, count);
    for (int64_t r = 0; r < rows.count; ++r)
      store_f32(context + r * kPanel, width, args.dst,
                at(args.dst_strides, rows.first + r) + column, false);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
