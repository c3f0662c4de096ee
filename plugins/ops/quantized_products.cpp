// SPDX-License-Identifier: Apache-2.0
// QLinearMatMul and QLinearConv: by their pieces, which is what they mean.
#include "convolve.hpp"
#include "cost.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// Inputs of both: a, its scale and zero, b, its scale and zero, y's scale and zero [, bias].
Status matmul_shape(EditView edit, Node node) {
  Type a = node.input(0).type(), b = node.input(3).type();
  uint32_t dtype = node.input(7).dtype();
  if (!a.ranked || !b.ranked || a.rank() < 2 || b.rank() < 2)
    return set_output(edit, node, 0, unranked(dtype));
  TN_TRY(out, product_dims(dims_of(a), dims_of(b)));
  return set_output(edit, node, 0, dtype, out);
}
Status conv_types(EditView edit, Node node) {
  return conv_shape(edit, node, 3, node.input(7).dtype());
}

// Scales and zero points of one axis; with more than one element they are vectors.
Result<Value> dequantized(EditView edit, Node node, uint64_t i, int64_t axis) {
  return edit.op("DequantizeLinear", {node.input(i), node.input(i + 1), node.input(i + 2)},
                 {{"axis", axis}});
}

Result<std::vector<Value>> matmul_decompose(EditView edit, Node node) {
  Type a = node.input(0).type(), b = node.input(3).type();
  if (!a.ranked || !b.ranked) return unsupported("QLinearMatMul: only known ranks are composite");
  TN_TRY(left, dequantized(edit, node, 0, static_cast<int64_t>(a.rank()) - 2));
  TN_TRY(right, dequantized(edit, node, 3, static_cast<int64_t>(b.rank()) - 1));
  TN_TRY(product, edit.op("MatMul", {left, right}));
  TN_TRY(y, edit.op("QuantizeLinear", {product, node.input(6), node.input(7)}));
  return std::vector<Value>{y};
}

Result<std::vector<Value>> conv_decompose(EditView edit, Node node) {
  TN_TRY(x, dequantized(edit, node, 0, 1));
  TN_TRY(w, dequantized(edit, node, 3, 0));
  std::vector<Value> inputs{x, w};
  if (node.input(8)) {  // an int32 bias has the scale of the product
    TN_TRY(scale, edit.op("Mul", {node.input(1), node.input(4)}));
    TN_TRY(bias, edit.op("DequantizeLinear", {node.input(8), scale}, {{"axis", 0}}));
    inputs.push_back(bias);
  }
  std::vector<Attr> attrs;
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}) {
    tn_any value = node.attr(name);
    if (value.tag != TN_ANY_NONE) attrs.emplace_back(name, value);
  }
  TN_TRY(product, edit.op("Conv", inputs, attrs));
  TN_TRY(y, edit.op("QuantizeLinear", {product, node.input(6), node.input(7)}));
  return std::vector<Value>{y};
}

Result<Node> quantized_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  bool conv = type == "QLinearConv";
  int64_t k = random.integer(1, 4), n = random.integer(1, 4);
  std::vector<int64_t> a{1, k, 5, 4}, b{n, k, 3, 2};
  if (!conv) a = {2, random.integer(1, 4), k}, b = {k, n};
  TN_TRY(x, random.input(TN_U8, a));
  TN_TRY(w, random.input(TN_I8, b));
  TN_TRY(scale, edit.constant<float>(TN_F32, {}, std::vector<float>{0.5f}));
  TN_TRY(y_scale, edit.constant<float>(TN_F32, {}, std::vector<float>{0.25f}));
  TN_TRY(x_zero, edit.constant<uint8_t>(TN_U8, {}, std::vector<uint8_t>{1}));
  TN_TRY(w_zero, edit.constant<int8_t>(TN_I8, {}, std::vector<int8_t>{0}));
  TN_TRY(y_zero, edit.constant<uint8_t>(TN_U8, {}, std::vector<uint8_t>{7}));
  return edit.add({.type = type, .inputs = {x, scale, x_zero, w, scale, w_zero, y_scale, y_zero}});
}
Result<Node> matmul_sample(EditView edit, uint64_t seed) {
  return quantized_sample(edit, seed, "QLinearMatMul");
}
Result<Node> conv_sample(EditView edit, uint64_t seed) {
  return quantized_sample(edit, seed, "QLinearConv");
}

constexpr tn_op kMatMul =
    op_row({.type = "QLinearMatMul",
            .since = 21,
            .quant = "integer",
            .shape = shape<matmul_shape,
                           "a: T, a_scale: U, a_zero: T, b: V, b_scale: U, b_zero: V, y_scale: U, "
                           "y_zero: W ; T = stored, V = stored, W = stored">,
            .decompose = decompose<matmul_decompose>,
            .sample = sample<matmul_sample>});
constexpr tn_op kConv = op_row(
    {.type = "QLinearConv",
     .since = 10,
     .attributes = "[" TENON_WINDOW_ATTRIBUTES R"(,{"name": "group", "type": "int", "default": 1},
                    {"name": "kernel_shape", "type": "ints"}])",
     .quant = "integer",
     .shape = shape<conv_types,
                    "x: T[n (g c) s..], x_scale: f32[one], x_zero: T[one], w: V[(g o) c s'..], "
                    "w_scale: f32, w_zero: V, y_scale: f32[one], y_zero: W[one], "
                    "bias: i32[(g o)]? ; g = group, T = i8|u8, V = i8|u8, W = i8|u8">,
     .decompose = decompose<conv_decompose>,
     .cost = cost<[](Node node) { return OpCost{conv_flops(node, 3), node_bytes(node)}; }>,
     .sample = sample<conv_sample>});

}  // namespace

TENON_OPS(quantized_products, &kMatMul, &kConv)

}  // namespace tenon::ops
