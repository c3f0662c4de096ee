// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of ONNX Runtime's domain that its graph optimizer fuses with a
// transpose, a sum or an activation.
#include "tenon/sdk/alike.hpp"

#include "convolve.hpp"
#include "dims.hpp"
#include "fused.hpp"
#include "matrices.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using fused::kDomain;
using fused::made;

Dims across(Dims dims, bool is_transposed) {
  if (is_transposed && dims.size() > 1) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}
Status product_shape(EditView edit, Node node) {
  TN_CHECK(fused::expect_zero(node, {"transBatchA", "transBatchB"}));
  Type a = node.input(0).type(), b = node.input(1).type();
  if (!a.ranked || !b.ranked) return set_output(edit, node, 0, unranked(a.dtype));
  TN_TRY(out, product_dims(across(dims_of(a), node.attr_int("transA") != 0),
                           across(dims_of(b), node.attr_int("transB") != 0)));
  return set_output(edit, node, 0, a.dtype, out);
}
Result<std::vector<Value>> product_decompose(EditView edit, Node node) {
  Builder b(edit);
  auto operand = [&](uint64_t i, const char* transposed) {
    Value x = node.input(i);
    if (node.attr_int(transposed) == 0) return x;
    const size_t rank = b.ranked(x, "FusedMatMul").rank();
    return rank < 2 ? x : swapped(b, x, rank);
  };
  Value left = operand(0, "transA"), right = operand(1, "transB");
  Value y = b.op("MatMul", {left, right});
  double alpha = node.attr_float("alpha", 1);
  return made(b, alpha == 1 ? y : b.mul(y, b.number(alpha, node.input(0).dtype())));
}

// ---- products and convolutions with an activation

Status fused_conv_shape(EditView edit, Node node) {
  return conv_shape(edit, node, 1, node.input(0).dtype());
}
struct Activation {
  std::string_view type;
  std::vector<const char*> parameters;
};
const Activation kActivations[] = {
    {"Relu", {}},
    {"Sigmoid", {}},
    {"Tanh", {}},
    {"Softplus", {}},
    {"Elu", {"alpha"}},
    {"LeakyRelu", {"alpha"}},
    {"ThresholdedRelu", {"alpha"}},
    {"HardSigmoid", {"alpha", "beta"}},
};
Result<Value> activated(Builder& b,
                        std::string_view type,
                        const std::vector<double>& given,
                        Value y) {
  if (type.empty()) return y;
  if (type == "Clip" && given.size() == 2)
    return b.op(type, {y, b.number(given[0], y.dtype()), b.number(given[1], y.dtype())});
  for (const Activation& one : kActivations) {
    if (one.type != type || given.size() < one.parameters.size()) continue;
    std::vector<Attr> attrs;
    for (size_t i = 0; i < one.parameters.size(); ++i)
      attrs.emplace_back(one.parameters[i], given[i]);
    return b.op(type, {y}, attrs);
  }
  return unsupported(
      cat("attribute activation: expected Relu, Sigmoid, Tanh, Softplus, or with their parameters "
          "Elu, LeakyRelu, ThresholdedRelu, HardSigmoid, Clip, got ",
          type, " with ", given.size(), " parameters"));
}
Result<std::vector<Value>> fused_conv_decompose(EditView edit, Node node) {
  Builder b(edit);
  std::vector<Value> inputs{node.input(0), node.input(1)};
  if (node.input(2)) inputs.push_back(node.input(2));
  Value y = b.op("Conv", inputs, conv_attributes(node));
  if (node.input(3)) y = b.add(y, node.input(3));
  TN_TRY(result,
         activated(b, node.attr_text("activation"), floats_of(node.attr("activation_params")), y));
  return made(b, result);
}

Status fused_gemm_shape(EditView edit, Node node) {
  Type a = node.input(0).type(), b = node.input(1).type();
  if (!a.ranked || !b.ranked) return set_output(edit, node, 0, unranked(a.dtype));
  TN_TRY(out, product_dims(across(dims_of(a), node.attr_int("transA") != 0),
                           across(dims_of(b), node.attr_int("transB") != 0)));
  if (node.input(2)) TN_CHECK(expect_broadcast(node, 2, out));
  return set_output(edit, node, 0, a.dtype, out);
}
Result<std::vector<Value>> fused_gemm_decompose(EditView edit, Node node) {
  Builder b(edit);
  std::vector<Value> inputs{node.input(0), node.input(1)};
  if (node.input(2)) inputs.push_back(node.input(2));
  Value y = b.op("Gemm", inputs,
                 {{"alpha", node.attr_float("alpha", 1)},
                  {"beta", node.attr_float("beta", 1)},
                  {"transA", node.attr_int("transA")},
                  {"transB", node.attr_int("transB")}});
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (tn_any given = node.attr(name); given.tag != TN_ANY_NONE)
      parameters.push_back(float_of(given, 0));
  TN_TRY(result, activated(b, node.attr_text("activation"), parameters, y));
  return made(b, result);
}

// ---- samples

Result<Node> product_of(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  int64_t m = random.integer(1, 4), k = random.integer(1, 4), n = random.integer(1, 4);
  bool a_across = random.coin(), b_across = random.coin();
  TN_TRY(a, random.input(TN_F32,
                         a_across ? std::vector{int64_t{2}, k, m} : std::vector{int64_t{2}, m, k}));
  TN_TRY(b, random.input(TN_F32, b_across ? std::vector{n, k} : std::vector{k, n}));
  return edit.add(
      {.type = type,
       .inputs = {a, b},
       .attrs = {{"transA", int64_t{a_across}}, {"transB", int64_t{b_across}}, {"alpha", 0.5}},
       .domain = kDomain});
}
Result<Node> product_sample(EditView edit, uint64_t seed) {
  return product_of(edit, seed, "FusedMatMul");
}
Result<Node> transpose_product_sample(EditView edit, uint64_t seed) {
  return product_of(edit, seed, "TransposeMatMul");
}
Result<Node> fused_gemm_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t m = random.integer(1, 4), k = random.integer(1, 4), n = random.integer(1, 4);
  TN_TRY(a, random.input(TN_F32, {m, k}));
  TN_TRY(b, random.input(TN_F32, {n, k}));
  TN_TRY(c, random.input(TN_F32, {n}));
  return edit.add(
      {.type = "FusedGemm",
       .inputs = {a, b, c},
       .attrs = {{"transB", 1}, {"activation", "LeakyRelu"}, {"activation_alpha", 0.25}},
       .domain = kDomain});
}
Result<Node> fused_conv_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t c = random.integer(1, 3), n = random.integer(1, 3);
  TN_TRY(x, random.input(TN_F32, {1, c, 5, 4}));
  TN_TRY(w, random.input(TN_F32, {n, c, 2, 2}));
  TN_TRY(bias, random.input(TN_F32, {n}));
  TN_TRY(z, random.input(TN_F32, {1, n, 4, 3}));
  return edit.add({.type = "FusedConv",
                   .inputs = {x, w, bias, z},
                   .attrs = {{"activation", random.coin() ? "Relu" : "Tanh"}},
                   .domain = kDomain});
}

constexpr tn_op kProduct =
    op_row({.type = "FusedMatMul",
            .domain = kDomain,
            .attributes = R"([{"name": "alpha", "type": "float", "default": 1.0},
                       {"name": "transA", "type": "int", "default": 0},
                       {"name": "transB", "type": "int", "default": 0},
                       {"name": "transBatchA", "type": "int", "default": 0},
                       {"name": "transBatchB", "type": "int", "default": 0}])",
            .shape = shape<product_shape, "a: T, b: T ; T = float">,
            .decompose = decompose<product_decompose>,
            .sample = sample<product_sample>});
// The older name of FusedMatMul.
constexpr tn_op kTransposeProduct =
    op_row({.type = "TransposeMatMul",
            .domain = kDomain,
            .attributes = R"([{"name": "alpha", "type": "float", "default": 1.0},
                              {"name": "transA", "type": "int", "default": 0},
                              {"name": "transB", "type": "int", "default": 0}])",
            .shape = shape<product_shape, "a: T, b: T ; T = float">,
            .decompose = decompose<product_decompose>,
            .sample = sample<transpose_product_sample>});
constexpr tn_op kFusedGemm =
    op_row({.type = "FusedGemm",
            .domain = kDomain,
            .attributes = R"([{"name": "alpha", "type": "float", "default": 1.0},
                              {"name": "beta", "type": "float", "default": 1.0},
                              {"name": "transA", "type": "int", "default": 0},
                              {"name": "transB", "type": "int", "default": 0},
                              {"name": "activation", "type": "string"},
                              {"name": "activation_alpha", "type": "float"},
                              {"name": "activation_beta", "type": "float"},
                              {"name": "activation_gamma", "type": "float"}])",
            .shape = shape<fused_gemm_shape, "a: T[_ _], b: T[_ _], c: T? ; T = float">,
            .decompose = decompose<fused_gemm_decompose>,
            .sample = sample<fused_gemm_sample>});
constexpr tn_op kFusedConv = op_row(
    {.type = "FusedConv",
     .domain = kDomain,
     .attributes = "[" TENON_WINDOW_ATTRIBUTES R"(,{"name": "group", "type": "int", "default": 1},
                    {"name": "kernel_shape", "type": "ints"},
                    {"name": "activation", "type": "string"},
                    {"name": "activation_params", "type": "floats"}])",
     .shape = shape<fused_conv_shape,
                    "x: T[n (g c) s..], w: T[(g o) c s'..], bias: T[(g o)]?, sum: T? ; g = group, "
                    "T = float">,
     .decompose = decompose<fused_conv_decompose>,
     .sample = sample<fused_conv_sample>});

}  // namespace

TENON_OPS(fused_products, &kProduct, &kTransposeProduct, &kFusedGemm, &kFusedConv)

}  // namespace tenon::ops
