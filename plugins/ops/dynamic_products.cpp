// SPDX-License-Identifier: Apache-2.0
// MatMulIntegerToFloat and DynamicQuantizeMatMul of ONNX Runtime's domain: what its optimizer makes
// of the products of dynamic quantization.
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

constexpr const char* kDomain = "com.microsoft";

Status product_shape(EditView edit, Node node) {
  Type a = node.input(0).type(), b = node.input(1).type();
  if (!a.ranked || !b.ranked) return set_output(edit, node, 0, unranked(TN_F32));
  TN_TRY(out, product_dims(dims_of(a), dims_of(b)));
  return set_output(edit, node, 0, TN_F32, out);
}

struct Integers {  // a tensor of 8-bit integers; no zero point: 0
  Value values, scale, zero;
};

Result<std::vector<Value>> product(Builder& b, Integers left, Integers right, Value bias) {
  std::vector<Value> inputs{left.values, right.values};
  if (left.zero || right.zero)
    inputs.push_back(left.zero ? left.zero : b.number(0, left.values.dtype()));
  if (right.zero) inputs.push_back(right.zero);
  Value sums = b.cast(b.op("MatMulInteger", inputs), TN_F32);
  Value y = b.mul(sums, b.mul(left.scale, right.scale));
  if (bias) y = b.add(y, bias);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Result<std::vector<Value>> to_float_decompose(EditView edit, Node node) {
  Builder b(edit);
  return product(b, {node.input(0), node.input(2), node.input(4)},
                 {node.input(1), node.input(3), node.input(5)}, node.input(6));
}
Result<std::vector<Value>> dynamic_decompose(EditView edit, Node node) {
  Builder b(edit);
  Node quantized =
      b.node({.type = "DynamicQuantizeLinear", .inputs = {node.input(0)}, .n_outputs = 3});
  TN_CHECK(b.status());
  return product(b, {quantized.output(), quantized.output(1), quantized.output(2)},
                 {node.input(1), node.input(2), node.input(3)}, node.input(4));
}

Result<Node> product_sample(EditView edit, uint64_t seed, bool is_dynamic) {
  Sampler random(edit, seed);
  int64_t m = random.integer(1, 4), k = random.integer(1, 4), n = random.integer(1, 4);
  TN_TRY(a, random.input(is_dynamic ? TN_F32 : TN_U8, {2, m, k}));
  TN_TRY(b, random.input(TN_I8, {k, n}));
  TN_TRY(scale, edit.constant<float>(TN_F32, {}, std::vector<float>{0.5F}));
  TN_TRY(scales, random.input(TN_F32, {n}));
  TN_TRY(zero, edit.constant<uint8_t>(TN_U8, {}, std::vector<uint8_t>{3}));
  TN_TRY(bias, random.input(TN_F32, {n}));
  if (is_dynamic)
    return edit.add(
        {.type = "DynamicQuantizeMatMul", .inputs = {a, b, scales, {}, bias}, .domain = kDomain});
  return edit.add({.type = "MatMulIntegerToFloat",
                   .inputs = {a, b, scale, scales, zero, {}, bias},
                   .domain = kDomain});
}
Result<Node> to_float_sample(EditView edit, uint64_t seed) {
  return product_sample(edit, seed, false);
}
Result<Node> dynamic_sample(EditView edit, uint64_t seed) {
  return product_sample(edit, seed, true);
}

constexpr tn_op kToFloat = op_row(
    {.type = "MatMulIntegerToFloat",
     .domain = kDomain,
     .shape = shape<product_shape,
                    "a: T, b: U, a_scale: f32[one], b_scale: f32, a_zero: T[one]?, b_zero: U?, "
                    "bias: f32? ; T = i8|u8, U = i8|u8">,
     .decompose = decompose<to_float_decompose>,
     .sample = sample<to_float_sample>});
constexpr tn_op kDynamic = op_row(
    {.type = "DynamicQuantizeMatMul",
     .domain = kDomain,
     .shape =
         shape<product_shape, "a: f32, b: U, b_scale: f32, b_zero: U?, bias: f32? ; U = i8|u8">,
     .decompose = decompose<dynamic_decompose>,
     .sample = sample<dynamic_sample>});

}  // namespace

TENON_OPS(dynamic_products, &kToFloat, &kDynamic)

}  // namespace tenon::ops
