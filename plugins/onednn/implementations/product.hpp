// SPDX-License-Identifier: Apache-2.0
#pragma once
// One matrix product with its epilogue: what MatMul and Gemm share.

#include "choice.hpp"
#include "lowering/epilogue.hpp"

namespace tenon::onednn {

struct Product {
  int node = kNone;
  int a = kNone;  // values
  int b = kNone;
  bool transpose_a = false;
  bool transpose_b = false;
  int bias = kNone;  // of the node itself: [n] or something that broadcasts

  // Axes of b, which has so many: what is summed over, and what it makes.
  size_t k_axis(size_t rank) const { return transpose_b ? rank - 1 : rank - 2; }
  size_t n_axis(size_t rank) const { return transpose_b ? rank - 2 : rank - 1; }
};
void lower_product(Lowering& lowering, const Product& product);

// What all implementations of a product look at, and their offers, a file each. The list is in
// product.cpp.
struct ProductSite {
  Lowering& lowering;
  Product product;
  Epilogue epilogue;  // all that may be taken along
  Epilogue alone;     // nothing

  const Node& node() const { return lowering.graph().nodes[product.node]; }
};
// Signs by signs, by kernels/binary_product.h: whatever rewrites/join_signs has packed.
Offer offer_binary_product(const ProductSite& site);
// Half of the product of a large matrix with its own transpose (the same memory).
Offer offer_symmetric_product(const ProductSite& site);
// Of weights that are mostly zeros only the others, by kernels/sparse_product.h.
Offer offer_sparse_product(const ProductSite& site);
// On AMX tiles (kernels/tile_product.h), in int8 and, with precision=bf16, in bf16.
Offer offer_tile_product(const ProductSite& site);
Offer offer_bf16x6_product(const ProductSite& site);
// In 8 bits by kernels/int8_product.h, where oneDNN's sums would saturate.
Offer offer_int8_product(const ProductSite& site);
// By plain loops: no more products than a primitive takes time to begin.
Offer offer_column_product(const ProductSite& site);
Offer offer_small_product(const ProductSite& site);
// One row, or one column, times matrices that are computed, by kernels/row_product.h.
Offer offer_row_product(const ProductSite& site);
// By oneDNN, in the first of its forms that it has a kernel for.
Offer offer_onednn_product(const ProductSite& site);

// Scores, Softmax and context of attention, from the node of the scores, in the first form that
// applies; else that node is a product.
void lower_scores(Lowering& lowering, const Product& scores);

// Known weights in 8 bits are multiplied with an operand in floats as floats: they become the f32
// numbers of a float model, which all implementations take. Not where several nodes read them:
// another may multiply them in 8 bits.
void read_as_floats(Lowering& lowering, int operand, int weights);

// The value in the type that is computed in, with an axis of stride 1 among its last two.
View real_matrix(Lowering& lowering, int value);
// The same, before it is: its type and strides are right, its memory may be another's.
View planned_real_matrix(const Lowering& lowering, int value);
// oneDNN multiplies matrices with one axis of stride 1, and does it fast for these orders of axes.
bool is_fast_matrix(const View& view);
// The operands of a product that plain loops take, as [.., m, k] and [.., k, n] by their strides:
// one matrix of f32 each, without a bias; the rows of all batches are one matrix where b is one. Or
// why they do not.
std::string plain_operands(const ProductSite& site, View* a, View* b);
// Whether a bias of a product of n columns, if there is one, is known and a row.
bool has_known_row(const Lowering& lowering, int bias, int64_t n);
// u8 or s8 that stand for floating-point numbers.
bool holds_quantized(const View& view);
// Numbers in f32 or bf16, and no quantized values.
bool holds_floats(const View& view);
// One matrix for all batches: only then may the rows of all batches be folded into one product.
bool is_one_matrix(const View& view);
// Whether products of integers can take them: known, signed, symmetric, with one scale or one for
// each index of `axis`.
bool are_int8_weights(const Lowering& lowering, const View& view, int axis);
// Whether oneDNN's sums of such products are exact: with VNNI, or where weights have seven bits and
// the other quantized values no sign, as the quantizers make them with `reduce_range`.
bool sums_are_exact(const Lowering& lowering, const View& quantized, const View& weights);
// Whether a product of two activations can be one of integers, its second operand being signed.
bool may_be_int8(const View& a, const View& b);
// A quantized activation as s8, the same numbers: quantized values and zero point are 128 less
// where it is u8.
View as_signed(Lowering& lowering, int value);
// The scales of b [.., k, n] in a product of `rank` axes: one, or one for each column.
int mask_of_scales(const View& b, size_t rank);
// Those with which what is behind the Transposes that alone read the value, one after the other, is
// row-major.
Dims strides_behind_transposes(const Graph& graph, int value);
// How a product should leave its result: Transposes that alone read it (heads merged after
// attention) become the layout, where its columns stay side by side.
Dims strides_for_reader(const Lowering& lowering, int value);

}  // namespace tenon::onednn
