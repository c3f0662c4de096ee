// SPDX-License-Identifier: Apache-2.0
#pragma once
// One matrix product with its tail: what MatMul and Gemm share.

#include "../tail.hpp"

namespace tenon::onednn {

struct Product {
  int node = kNone;
  int a = kNone;  // values
  int b = kNone;
  bool transpose_a = false;
  bool transpose_b = false;
  int bias = kNone;  // of the node itself: [n] or something that broadcasts
};
// Tries with all that can be absorbed, then alone.
void lower_product(Lowering& lowering, const Product& product);
// Half of the product of a large matrix with its own transpose (the same memory); false, and
// nothing done, for other products.
bool lower_symmetric_product(Lowering& lowering, const Product& product);

// Scores, Softmax and context of attention in parts that stay in cache, from the node of the
// scores; false, and nothing done, where there is no such chain or it is small.
bool lower_attention(Lowering& lowering, int node);

// The value in the type that is computed in, with an axis of stride 1 among its last two.
View real_matrix(Lowering& lowering, int value);
// u8 or s8 that stand for real numbers.
bool holds_codes(const View& view);
// Numbers in f32 or bf16, and no codes.
bool holds_floats(const View& view);
// One matrix for all batches: only then may the rows of all batches be folded into one product.
bool is_one_matrix(const View& view);
// Whether products of integers can take them: known, signed, symmetric, with one scale or one for
// each index of `axis`.
bool are_code_weights(const Lowering& lowering, const View& view, int axis);
// Whether oneDNN's sums of such products are exact: with VNNI, or where weights have seven bits and
// the other codes no sign, as the quantizers make them with `reduce_range`.
bool sums_are_exact(const Lowering& lowering, const View& codes, const View& weights);
// Whether a product of two activations can be one of integers, its second operand being signed.
bool may_be_int8(const View& a, const View& b);
// A quantized activation as s8, the same numbers: codes and zero point are 128 less where it is u8.
View signed_codes(Lowering& lowering, int value);
// What the codes of a and b [.., k, n] mean, for a product of `rank` axes.
void add_scales(Lowering& lowering,
                const View& a,
                const View& b,
                size_t rank,
                dnnl::primitive_attr* attr,
                std::vector<Argument>* arguments);
// How a product should leave its result: a Transpose that alone reads it (heads merged after
// attention) becomes the layout.
Dims strides_for_reader(const Lowering& lowering, int value);

}  // namespace tenon::onednn
