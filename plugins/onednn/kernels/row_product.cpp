// SPDX-License-Identifier: Apache-2.0
#include "row_product.h"

#include <algorithm>

#include "kernel_table.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t kColumns = 256;  // of the smallest piece of one product

}  // namespace

void row_product(const Context& context, const RowProductArgs& args) {
  const RowProductPiece& matrix = args.matrix;
  const int64_t n_blocks = (matrix.n + kColumns - 1) / kColumns;
  const int64_t n_products = static_cast<int64_t>(args.b_starts.size());
  const int64_t block_bytes =
      matrix.k * std::min(matrix.n, kColumns) * static_cast<int64_t>(sizeof(float));
  parallel_for(context.parallel, n_products * n_blocks, grain_rows(block_bytes),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t block = lo; block < hi;) {
                   const int64_t product = block / n_blocks, first = block % n_blocks;
                   const int64_t end = std::min(n_blocks, first + hi - block);
                   RowProductPiece piece = matrix;
                   piece.a += args.a_starts[static_cast<size_t>(product)];
                   piece.b += args.b_starts[static_cast<size_t>(product)];
                   piece.dst += product * matrix.n;
                   context.table->row_product_columns(piece, first * kColumns,
                                                      std::min(matrix.n, end * kColumns));
                   block += end - first;
                 }
               });
}

}  // namespace tenon::onednn::kernels
