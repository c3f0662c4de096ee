// SPDX-License-Identifier: Apache-2.0
// The float operators of ONNX Runtime's domain that its graph optimizer writes in the place of
// several of ONNX's: what they stand for.
#include "dims.hpp"
#include "fused.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using fused::is_read;
using fused::kDomain;
using fused::made;

Status same_as_first(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
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
  Type x = node.input(0).type(), skip = node.input(1).type();
  bool fits = !x.ranked || !skip.ranked || skip.rank() <= x.rank();
  for (size_t i = 0; fits && x.ranked && skip.ranked && i < skip.rank(); ++i) {
    const int64_t its = skip.dims[i], own = x.dims[x.rank() - skip.rank() + i];
    fits = its == 1 || its < 0 || own < 0 || its == own;
  }
  if (!fits)
    return invalid(cat("skip: expected the shape of x, ", type_text(x),
                       ", or one that broadcasts to "
                       "it, got ",
                       type_text(skip)));
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
  const bool has_statistics = is_read(node, 1) || is_read(node, 2);
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

// ONNX Runtime writes it in ONNX's own domain; the scale's type is the result's.
Status rms_norm_shape(EditView edit, Node node) {
  TN_CHECK(fused::expect_unread(node, 1, "inv_std_var"));
  Type y = node.input(0).type();
  y.dtype = node.input(1).dtype();
  return set_output(edit, node, 0, y);
}
Result<std::vector<Value>> rms_norm_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value y =
      b.op("RMSNormalization", {node.input(0), b.cast(node.input(1), node.input(0).dtype())},
           {{"axis", node.attr_int("axis", -1)}, {"epsilon", node.attr_float("epsilon", 1e-5)}});
  return made(b, b.cast(y, node.input(1).dtype()));
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
Result<Node> rms_norm_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {2, random.integer(1, 3), 4}));
  TN_TRY(scale, random.input(TN_F32, {4}));
  return edit.add({.type = "SimplifiedLayerNormalization",
                   .inputs = {x, scale},
                   .attrs = {{"axis", -1}, {"epsilon", 0.5}}});
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
constexpr tn_op kRmsNorm =
    op_row({.type = "SimplifiedLayerNormalization",
            .attributes = R"([{"name": "axis", "type": "int", "default": -1},
                              {"name": "epsilon", "type": "float", "default": 1e-5},
                              {"name": "stash_type", "type": "dtype"}])",
            .shape = shape<rms_norm_shape, "x: T, scale: U ; T = float, U = float">,
            .decompose = decompose<rms_norm_decompose>,
            .sample = sample<rms_norm_sample>});
}  // namespace

TENON_OPS(fused_operators,
          &kGelu,
          &kBiasGelu,
          &kFastGelu,
          &kQuickGelu,
          &kSkipNorm,
          &kSkipRmsNorm,
          &kRmsNorm)

}  // namespace tenon::ops
