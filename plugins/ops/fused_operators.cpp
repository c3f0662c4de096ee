// SPDX-License-Identifier: Apache-2.0
// The float operators of ONNX Runtime's domain that its graph optimizer writes in the place of
// several of ONNX's: what they stand for.
#include <algorithm>

#include "tenon/sdk/alike.hpp"

#include "convolve.hpp"
#include "dims.hpp"
#include "matrices.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

constexpr const char* kDomain = "com.microsoft";

Status same_as_first(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}
Result<std::vector<Value>> made(Builder& b, Value y) {
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

// ---- GELU and its relatives

Value gelu(Builder& b, Value x, std::string_view approximate) {
  return b.op("Gelu", {x}, {{"approximate", approximate}});
}
Result<std::vector<Value>> gelu_decompose(EditView edit, Node node) {
  Builder b(edit);
  return made(b, gelu(b, node.input(0), "none"));
}
Result<std::vector<Value>> bias_gelu_decompose(EditView edit, Node node) {
  Builder b(edit);
  return made(b, gelu(b, b.add(node.input(0), node.input(1)), "none"));
}
Result<std::vector<Value>> fast_gelu_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(1) ? b.add(node.input(0), node.input(1)) : node.input(0);
  return made(b, gelu(b, x, "tanh"));
}
Result<std::vector<Value>> quick_gelu_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  Value slope = b.number(node.attr_float("alpha", 1.702), x.dtype());
  return made(b, b.mul(x, b.op("Sigmoid", {b.mul(x, slope)})));
}

// ---- normalization of a sum; the sum is the fourth result

Status skip_norm_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  TN_CHECK(set_output(edit, node, 0, x));
  TN_CHECK(set_output(edit, node, 3, x));
  if (!x.ranked) {
    TN_CHECK(set_output(edit, node, 1, unranked(TN_F32)));
    return set_output(edit, node, 2, unranked(TN_F32));
  }
  Dims dims = dims_of(x);
  dims.back() = Dim(1);
  TN_CHECK(set_output(edit, node, 1, TN_F32, dims));
  return set_output(edit, node, 2, TN_F32, dims);
}
Result<std::vector<Value>> skip_norm_decompose(EditView edit, Node node) {
  Builder b(edit);
  const bool is_centred = node.type() == "SkipLayerNormalization";
  const uint64_t bias = is_centred ? 4 : 3;
  auto is_read = [&](uint64_t i) {
    return i < node.n_outputs() &&
           (node.output(i).consumer_count() > 0 || node.output(i).is_output());
  };
  const bool has_statistics = is_read(1) || is_read(2);
  if (!is_centred && has_statistics)
    return unsupported("SkipSimplifiedLayerNormalization: its statistics as results");
  Value sum = b.add(node.input(0), node.input(1));
  if (node.input(bias)) sum = b.add(sum, node.input(bias));
  std::vector<Value> inputs{sum, node.input(2)};
  if (is_centred && node.input(3)) inputs.push_back(node.input(3));
  Node norm = b.node({.type = is_centred ? "LayerNormalization" : "RMSNormalization",
                      .inputs = inputs,
                      .attrs = {{"axis", -1}, {"epsilon", node.attr_float("epsilon", 1e-12)}},
                      .n_outputs = has_statistics ? 3u : 1u});
  TN_CHECK(b.status());
  // A result that nobody reads may be any value.
  Value mean = has_statistics ? norm.output(1) : sum;
  Value inverse = has_statistics ? norm.output(2) : sum;
  std::vector<Value> outputs{norm.output(), mean, inverse, sum};
  outputs.resize(node.n_outputs());
  return outputs;
}

// ---- products

Dims across(Dims dims, bool is_transposed) {
  if (is_transposed && dims.size() > 1) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}
Status product_shape(EditView edit, Node node) {
  for (const char* name : {"transBatchA", "transBatchB"})
    if (node.attr_int(name) != 0)
      return unsupported(cat("attribute ", name, ": expected 0, got 1"));
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

// ---- convolution, sum and activation

Status fused_conv_shape(EditView edit, Node node) {
  return conv_shape(edit, node, 1, node.input(0).dtype());
}
Result<Value> activated(Builder& b, Node node, Value y) {
  std::string name(node.attr_text("activation"));
  std::vector<double> given = floats_of(node.attr("activation_params"));
  auto parameter = [&](size_t i, double fallback) {
    return i < given.size() ? given[i] : fallback;
  };
  if (name.empty()) return y;
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh") return b.op(name, {y});
  if (name == "LeakyRelu") return b.op(name, {y}, {{"alpha", parameter(0, 0.01)}});
  if (name == "HardSigmoid")
    return b.op(name, {y}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (name == "Clip" && given.size() == 2)
    return b.op(name, {y, b.number(given[0], y.dtype()), b.number(given[1], y.dtype())});
  return unsupported(
      cat("attribute activation: expected Relu, Sigmoid, Tanh, LeakyRelu, "
          "HardSigmoid, or Clip with two activation_params, got ",
          name));
}
Result<std::vector<Value>> fused_conv_decompose(EditView edit, Node node) {
  Builder b(edit);
  std::vector<Value> inputs{node.input(0), node.input(1)};
  if (node.input(2)) inputs.push_back(node.input(2));
  Value y = b.op("Conv", inputs, conv_attributes(node));
  if (node.input(3)) y = b.add(y, node.input(3));
  TN_TRY(result, activated(b, node, y));
  return made(b, result);
}

// ---- samples

Result<Node> unary_sample(EditView edit, uint64_t seed, std::string_view type, int n_biases) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  TN_TRY(x, random.input(TN_F32, dims));
  std::vector<Value> inputs{x};
  if (n_biases > 0) {
    TN_TRY(bias, random.input(TN_F32, {dims.back()}));
    inputs.push_back(bias);
  }
  return edit.add({.type = type, .inputs = inputs, .domain = kDomain});
}
Result<Node> gelu_sample(EditView edit, uint64_t seed) {
  return unary_sample(edit, seed, "Gelu", 0);
}
Result<Node> bias_gelu_sample(EditView edit, uint64_t seed) {
  return unary_sample(edit, seed, "BiasGelu", 1);
}
Result<Node> fast_gelu_sample(EditView edit, uint64_t seed) {
  return unary_sample(edit, seed, "FastGelu", static_cast<int>(seed % 2));
}
Result<Node> quick_gelu_sample(EditView edit, uint64_t seed) {
  return unary_sample(edit, seed, "QuickGelu", 0);
}
Result<Node> skip_norm_of(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims{2, random.integer(1, 3), random.integer(3, 8)};
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(skip, random.input(TN_F32, dims));
  std::vector<Value> inputs{x, skip};
  for (int64_t i = type == "SkipLayerNormalization" ? 3 : 2; i > 0; --i) {
    TN_TRY(row, random.input(TN_F32, {dims.back()}));
    inputs.push_back(row);
  }
  // The default is for rows that are longer: the slopes of two equal numbers have no bound.
  return edit.add({.type = type, .inputs = inputs, .attrs = {{"epsilon", 0.5}}, .domain = kDomain});
}
Result<Node> skip_norm_sample(EditView edit, uint64_t seed) {
  return skip_norm_of(edit, seed, "SkipLayerNormalization");
}
Result<Node> skip_rms_norm_sample(EditView edit, uint64_t seed) {
  return skip_norm_of(edit, seed, "SkipSimplifiedLayerNormalization");
}
Result<Node> product_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t m = random.integer(1, 4), k = random.integer(1, 4), n = random.integer(1, 4);
  bool a_across = random.coin(), b_across = random.coin();
  TN_TRY(a, random.input(TN_F32,
                         a_across ? std::vector{int64_t{2}, k, m} : std::vector{int64_t{2}, m, k}));
  TN_TRY(b, random.input(TN_F32, b_across ? std::vector{n, k} : std::vector{k, n}));
  return edit.add(
      {.type = "FusedMatMul",
       .inputs = {a, b},
       .attrs = {{"transA", int64_t{a_across}}, {"transB", int64_t{b_across}}, {"alpha", 0.5}},
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

constexpr tn_op kGelu = op_row({.type = "Gelu",
                                .domain = kDomain,
                                .shape = shape<same_as_first, "x: float">,
                                .decompose = decompose<gelu_decompose>,
                                .sample = sample<gelu_sample>});
constexpr tn_op kBiasGelu =
    op_row({.type = "BiasGelu",
            .domain = kDomain,
            .shape = shape<same_as_first, "x: T[s.. c], bias: T[c] ; T = float">,
            .decompose = decompose<bias_gelu_decompose>,
            .sample = sample<bias_gelu_sample>});
constexpr tn_op kFastGelu =
    op_row({.type = "FastGelu",
            .domain = kDomain,
            .shape = shape<same_as_first, "x: T[s.. c], bias: T[c]? ; T = float">,
            .decompose = decompose<fast_gelu_decompose>,
            .sample = sample<fast_gelu_sample>});
constexpr tn_op kQuickGelu =
    op_row({.type = "QuickGelu",
            .domain = kDomain,
            .attributes = R"([{"name": "alpha", "type": "float", "default": 1.702}])",
            .shape = shape<same_as_first, "x: float">,
            .decompose = decompose<quick_gelu_decompose>,
            .sample = sample<quick_gelu_sample>});
constexpr tn_op kSkipNorm = op_row(
    {.type = "SkipLayerNormalization",
     .domain = kDomain,
     .attributes = R"([{"name": "epsilon", "type": "float", "default": 1e-12}])",
     .shape = shape<skip_norm_shape,
                    "x: T[s.. c], skip: T, scale: T[c], shift: T[c]?, bias: T[c]? ; T = float">,
     .decompose = decompose<skip_norm_decompose>,
     .sample = sample<skip_norm_sample>});
constexpr tn_op kSkipRmsNorm = op_row(
    {.type = "SkipSimplifiedLayerNormalization",
     .domain = kDomain,
     .attributes = R"([{"name": "epsilon", "type": "float", "default": 1e-12}])",
     .shape = shape<skip_norm_shape, "x: T[s.. c], skip: T, scale: T[c], bias: T[c]? ; T = float">,
     .decompose = decompose<skip_norm_decompose>,
     .sample = sample<skip_rms_norm_sample>});
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

TENON_OPS(fused_operators,
          &kGelu,
          &kBiasGelu,
          &kFastGelu,
          &kQuickGelu,
          &kSkipNorm,
          &kSkipRmsNorm,
          &kProduct,
          &kFusedConv)

}  // namespace tenon::ops
