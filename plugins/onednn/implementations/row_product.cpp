// SPDX-License-Identifier: Apache-2.0
// A product of f32 with one row, or with one column, whose matrices are computed: they are read
// once, where a primitive would first copy them into blocks.

#include "kernels/row_product.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "product.hpp"
#include "stack_starts.hpp"

namespace tenon::onednn {
namespace {

// The operands as [batch.., 1, k] and [batch.., k, n] by their strides.
struct RowAndMatrix {
  View row, matrix;
};

// An operand of one axis is a row on the left and a column on the right.
View as_matrix(View view, bool is_left) {
  if (view.dims.size() > 1) return view;
  const auto at = [&](Dims& numbers) { return is_left ? numbers.begin() : numbers.end(); };
  view.dims.insert(at(view.dims), 1);
  view.strides.insert(at(view.strides), 0);
  return view;
}

RowAndMatrix operands_of(const ProductSite& site) {
  const Lowering& lowering = site.lowering;
  const Product& product = site.product;
  View a = as_matrix(lowering.view(product.a), true);
  View b = as_matrix(lowering.view(product.b), false);
  if (product.transpose_a) a = transposed(a);
  if (product.transpose_b) b = transposed(b);
  if (a.dims[a.dims.size() - 2] == 1) return {std::move(a), std::move(b)};
  return {transposed(b), transposed(a)};  // the same product, transposed: a row as well
}

bool is_plain(const View& view) {
  return view.type == ElementType::kF32 && !view.is_quantized() && view.channels == nullptr;
}

Dims batch_of(const View& a, const View& b) {
  const View& longer = a.dims.size() >= b.dims.size() ? a : b;
  const View& shorter = a.dims.size() >= b.dims.size() ? b : a;
  Dims batch(longer.dims.begin(), longer.dims.end() - 2);
  const size_t shift = longer.dims.size() - shorter.dims.size();
  for (size_t i = 0; i + 2 < shorter.dims.size(); ++i)
    if (shorter.dims[i] != 1) batch[shift + i] = shorter.dims[i];
  return batch;
}

// Strides of axes without a second element say nothing.
int64_t step_of(const View& view, size_t from_last) {
  const size_t axis = view.dims.size() - from_last;
  return view.dims[axis] == 1 ? 1 : view.strides[axis];
}

}  // namespace

Offer offer_row_product(const ProductSite& site) {
  const Lowering& lowering = site.lowering;
  const int value = site.node().outputs[0];
  const RowAndMatrix operands = operands_of(site);
  const View &row = operands.row, &matrix = operands.matrix;
  if (site.product.bias != kNone) return refused("a bias of its own");
  if (!is_plain(row) || !is_plain(matrix) || lowering.stored_type(value) != ElementType::kF32 ||
      lowering.real_type() != ElementType::kF32)
    return refused("not two operands of f32");
  if (row.dims[row.dims.size() - 2] != 1) return refused("neither one row nor one column");
  if (lowering.is_constant_view(matrix)) return refused("a constant matrix, which is packed once");
  kernels::RowProductPiece piece{.k = matrix.dims[matrix.dims.size() - 2],
                                 .n = matrix.dims.back(),
                                 .a_k = step_of(row, 1),
                                 .b_k = step_of(matrix, 2),
                                 .b_column = step_of(matrix, 1)};
  if (piece.b_column != 1 && (piece.b_k != 1 || piece.a_k != 1))
    return refused("operands that do not lie along columns or along sums");
  const Dims batch = batch_of(row, matrix);
  return accepted([&site, row, matrix, piece, batch, value] {
    Lowering& l = site.lowering;
    const View dst =
        l.make(value, ElementType::kF32, row_major_strides(l.graph().values[value].dims));
    Step step{.name = site.node().name, .kernel = "tenon:row_product", .always_succeeds = true};
    step.flops = 2.0 * static_cast<double>(dst.count() * piece.k);
    step.bytes = static_cast<double>(row.bytes() + matrix.bytes() + dst.bytes());
    step.places = {place_of(row), place_of(matrix), place_of(dst)};
    step.kernel_function = [piece, row_starts = stack_starts(row.dims, row.strides, batch),
                            matrix_starts = stack_starts(matrix.dims, matrix.strides, batch)](
                               const kernels::Context& context,
                               void* const* pointers) -> const char* {
      kernels::RowProductArgs args{piece, row_starts, matrix_starts};
      args.matrix.a = static_cast<const float*>(pointers[0]);
      args.matrix.b = static_cast<const float*>(pointers[1]);
      args.matrix.dst = static_cast<float*>(pointers[2]);
      kernels::row_product(context, args);
      return nullptr;
    };
    l.add_step(std::move(step));
  });
}

}  // namespace tenon::onednn
