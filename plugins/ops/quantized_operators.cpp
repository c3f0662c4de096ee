// SPDX-License-Identifier: Apache-2.0
// The 8-bit operators of ONNX Runtime's domain, which its quantizer writes beside QLinearConv and
// QLinearMatMul: what they mean between a DequantizeLinear of each tensor and a QuantizeLinear.
#include "cost.hpp"
#include "sampling.hpp"
#include "window.hpp"

namespace tenon::ops {
namespace {

constexpr const char* kDomain = "com.microsoft";

// Input i with its scale and zero point behind it, as float; with several of them, along `axis`.
Value dequantized(Builder& b, Node node, uint64_t i, int64_t axis = 0) {
  std::vector<Value> inputs{node.input(i), node.input(i + 1)};
  if (node.input(i + 2)) inputs.push_back(node.input(i + 2));
  return b.op("DequantizeLinear", inputs, {{"axis", axis}});
}
// x quantized by the scale at input i and the zero point behind it.
Result<std::vector<Value>> quantized(Builder& b, Node node, Value x, uint64_t i) {
  Value zero = node.input(i + 1) ? node.input(i + 1) : b.number(0, node.output().dtype());
  Value y = b.op("QuantizeLinear", {x, node.input(i), zero});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

// ---- two operands that broadcast

Status pair_shape(EditView edit, Node node) {
  TN_TRY(type, broadcast_type(node.input(0).dtype(), {node.input(0), node.input(3)}));
  return set_output(edit, node, 0, type);
}
Result<std::vector<Value>> pair_of(std::string_view type, EditView edit, Node node) {
  Builder b(edit);
  Value x = dequantized(b, node, 0), y = dequantized(b, node, 3);
  return quantized(b, node, b.op(type, {x, y}), 6);
}
Result<std::vector<Value>> add_decompose(EditView edit, Node node) {
  return pair_of("Add", edit, node);
}
Result<std::vector<Value>> mul_decompose(EditView edit, Node node) {
  return pair_of("Mul", edit, node);
}

Status where_shape(EditView edit, Node node) {
  TN_TRY(type,
         broadcast_type(node.input(1).dtype(), {node.input(0), node.input(1), node.input(4)}));
  return set_output(edit, node, 0, type);
}
Result<std::vector<Value>> where_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = dequantized(b, node, 1), y = dequantized(b, node, 4);
  return quantized(b, node, b.op("Where", {node.input(0), x, y}), 7);
}

// ---- one operand

Status unary_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}
Result<std::vector<Value>> sigmoid_decompose(EditView edit, Node node) {
  Builder b(edit);
  return quantized(b, node, b.op("Sigmoid", {dequantized(b, node, 0)}), 3);
}
Result<std::vector<Value>> leaky_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = dequantized(b, node, 0);
  double slope = node.attr_float("alpha", 0.01);
  return quantized(b, node, b.op("LeakyRelu", {x}, {{"alpha", slope}}), 3);
}
// Up to opset 12 all axes from `axis` on are one.
Result<std::vector<Value>> softmax_decompose(EditView edit, Node node) {
  Builder b(edit);
  bool is_flat = node.attr_int("opset", 13) < 13;
  int64_t axis = node.attr_int("axis", -1);
  Value x = dequantized(b, node, 0);
  Value y = b.op("Softmax", {is_flat ? b.op("Flatten", {x}, {{"axis", axis}}) : x},
                 {{"axis", is_flat ? -1 : axis}});
  return quantized(b, node, is_flat ? b.reshape_like(y, x) : y, 3);
}

// ---- pools

Status expect_channels_first(Node node) {
  if (node.attr_int("channels_last") == 0) return {};
  return unsupported(
      cat("attribute channels_last: expected 0, got ", node.attr_int("channels_last")));
}
Status global_shape(EditView edit, Node node) {
  TN_CHECK(expect_channels_first(node));
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  Dims out = dims_of(x);
  std::fill(out.begin() + 2, out.end(), Dim(1));
  return set_output(edit, node, 0, x.dtype, out);
}
Result<std::vector<Value>> global_decompose(EditView edit, Node node) {
  Builder b(edit);
  return quantized(b, node, b.op("GlobalAveragePool", {dequantized(b, node, 0)}), 3);
}
Status pool_shape(EditView edit, Node node) {
  TN_CHECK(expect_channels_first(node));
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  Dims in = dims_of(x), kernel;
  for (int64_t size : node.attr_ints("kernel_shape"))
    kernel.emplace_back(size);
  TN_TRY(out, window_dims(node, Dims(in.begin() + 2, in.end()), kernel));
  out.insert(out.begin(), {in[0], in[1]});
  return set_output(edit, node, 0, x.dtype, out);
}
Result<std::vector<Value>> pool_decompose(EditView edit, Node node) {
  Builder b(edit);
  std::vector<Attr> attrs;
  for (const char* name : {"auto_pad", "ceil_mode", "count_include_pad", "dilations",
                           "kernel_shape", "pads", "strides"}) {
    tn_any value = node.attr(name);
    if (value.tag != TN_ANY_NONE) attrs.emplace_back(name, value);
  }
  return quantized(b, node, b.op("AveragePool", {dequantized(b, node, 0)}, attrs), 3);
}

// ---- a scale and zero point of the result, then tensors, each with its own

Status concat_shape(EditView edit, Node node) {
  if (node.n_inputs() < 5 || node.n_inputs() % 3 != 2)
    return invalid(cat("expected a scale and a zero point, then three inputs for each tensor, got ",
                       node.n_inputs(), " inputs"));
  uint32_t dtype = node.input(2).dtype();
  Dims out;
  for (uint64_t i = 2; i < node.n_inputs(); i += 3) {
    Type type = node.input(i).type();
    if (!type.ranked) return set_output(edit, node, 0, unranked(dtype));
    Dims dims = dims_of(type);
    TN_TRY(axis, axis_in(node.attr_int("axis"), dims.size()));
    if (i == 2) {
      out = dims;
      continue;
    }
    if (dims.size() != out.size())
      return invalid(cat("input ", i, ": expected rank ", out.size(), ", got ", dims.size()));
    for (size_t d = 0; d < dims.size(); ++d) {
      bool grows = d == static_cast<size_t>(axis);
      if (!grows && out[d].known() && dims[d].known() && !(out[d] == dims[d]))
        return invalid(
            cat("input ", i, " axis ", d, ": expected ", *out[d].value, ", got ", *dims[d].value));
      if (grows) out[d] = out[d] + dims[d];
      if (!grows && dims[d].known()) out[d] = dims[d];
    }
  }
  return set_output(edit, node, 0, dtype, out);
}
Result<std::vector<Value>> concat_decompose(EditView edit, Node node) {
  Builder b(edit);
  std::vector<Value> parts;
  for (uint64_t i = 2; i < node.n_inputs(); i += 3)
    parts.push_back(dequantized(b, node, i));
  return quantized(b, node, b.op("Concat", parts, {{"axis", node.attr_int("axis")}}), 0);
}

// ---- a product with an int32 bias, quantized or, without a scale of y, in float

Status gemm_shape(EditView edit, Node node) {
  Type a = node.input(0).type(), w = node.input(3).type();
  uint32_t dtype = node.input(7) ? node.input(0).dtype() : TN_F32;
  if (!a.ranked || !w.ranked) return set_output(edit, node, 0, unranked(dtype));
  Dims left = dims_of(a), right = dims_of(w);
  bool flip_a = node.attr_int("transA") != 0, flip_b = node.attr_int("transB") != 0;
  const Dim &inner = left[flip_a ? 0 : 1], &other = right[flip_b ? 1 : 0];
  if (inner.known() && other.known() && !(inner == other))
    return invalid(
        cat("inner dimensions: expected equal ones, got ", *inner.value, " and ", *other.value));
  Dims out{left[flip_a ? 1 : 0], right[flip_b ? 0 : 1]};
  TN_CHECK(expect_broadcast(node, 6, out));
  return set_output(edit, node, 0, dtype, out);
}
// The bias has the scale of the product, alpha included.
Result<std::vector<Value>> gemm_decompose(EditView edit, Node node) {
  Builder b(edit);
  int64_t flip_b = node.attr_int("transB");
  double alpha = node.attr_float("alpha", 1);
  std::vector<Value> inputs{dequantized(b, node, 0), dequantized(b, node, 3, flip_b ? 0 : 1)};
  if (Value bias = node.input(6)) {
    Value scale = b.mul(node.input(1), node.input(4));
    if (alpha != 1) scale = b.mul(scale, b.number(alpha, TN_F32));
    inputs.push_back(b.mul(b.cast(bias, TN_F32), scale));
  }
  Value y = b.op("Gemm", inputs,
                 {{"alpha", alpha}, {"transA", node.attr_int("transA")}, {"transB", flip_b}});
  if (node.input(7)) return quantized(b, node, y, 7);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

// ---- samples: u8 with zero point 7, all scales 0.25

class QuantizedSample {
 public:
  QuantizedSample(EditView edit, uint64_t seed) : random(edit, seed), b_(edit) {}
  Value tensor(const std::vector<int64_t>& dims) { return b_.take(random.input(TN_U8, dims)); }
  Value scale() { return b_.number(0.25, TN_F32); }
  Value zero() { return b_.take(random.edit().constant<uint8_t>(TN_U8, {}, {7})); }
  std::vector<Value> triple(const std::vector<int64_t>& dims) {
    return {tensor(dims), scale(), zero()};
  }
  Result<Node> node(std::string_view type, std::vector<Value> inputs, std::vector<Attr> attrs) {
    TN_CHECK(b_.status());
    return random.edit().add({.type = type, .inputs = inputs, .attrs = attrs, .domain = kDomain});
  }
  Sampler random;

 private:
  Builder b_;
};

Result<Node> pair_sample(EditView edit, uint64_t seed, std::string_view type) {
  QuantizedSample made(edit, seed);
  std::vector<int64_t> dims = made.random.shape(1, 4);
  std::vector<Value> inputs = made.triple(dims);
  for (Value value : made.triple(made.random.broadcastable(dims)))
    inputs.push_back(value);
  inputs.insert(inputs.end(), {made.scale(), made.zero()});
  return made.node(type, inputs, {});
}
Result<Node> add_sample(EditView edit, uint64_t seed) {
  return pair_sample(edit, seed, "QLinearAdd");
}
Result<Node> mul_sample(EditView edit, uint64_t seed) {
  return pair_sample(edit, seed, "QLinearMul");
}
Result<Node> where_sample(EditView edit, uint64_t seed) {
  QuantizedSample made(edit, seed);
  std::vector<int64_t> dims = made.random.shape(1, 4);
  TN_TRY(condition, made.random.input(TN_BOOL, made.random.broadcastable(dims)));
  std::vector<Value> inputs{condition};
  for (int i = 0; i < 2; ++i)
    for (Value value : made.triple(dims))
      inputs.push_back(value);
  inputs.insert(inputs.end(), {made.scale(), made.zero()});
  return made.node("QLinearWhere", inputs, {});
}
Result<Node> unary_sample(EditView edit,
                          uint64_t seed,
                          std::string_view type,
                          int64_t least_rank,
                          const std::vector<Attr>& attrs) {
  QuantizedSample made(edit, seed);
  std::vector<Value> inputs = made.triple(made.random.shape(least_rank, 4));
  inputs.insert(inputs.end(), {made.scale(), made.zero()});
  return made.node(type, inputs, attrs);
}
Result<Node> sigmoid_sample(EditView edit, uint64_t seed) {
  return unary_sample(edit, seed, "QLinearSigmoid", 1, {});
}
Result<Node> leaky_sample(EditView edit, uint64_t seed) {
  return unary_sample(edit, seed, "QLinearLeakyRelu", 1, {{"alpha", 0.25}});
}
Result<Node> softmax_sample(EditView edit, uint64_t seed) {
  return unary_sample(edit, seed, "QLinearSoftmax", 2,
                      {{"axis", 1}, {"opset", seed % 2 == 0 ? 13 : 12}});
}
Result<Node> global_sample(EditView edit, uint64_t seed) {
  return unary_sample(edit, seed, "QLinearGlobalAveragePool", 3, {});
}
Result<Node> pool_sample(EditView edit, uint64_t seed) {
  QuantizedSample made(edit, seed);
  std::vector<Value> inputs = made.triple({2, 3, 5, 4});
  inputs.insert(inputs.end(), {made.scale(), made.zero()});
  return made.node("QLinearAveragePool", inputs,
                   {{"kernel_shape", std::vector<int64_t>{2, 3}},
                    {"strides", std::vector<int64_t>{1, made.random.integer(1, 2)}},
                    {"count_include_pad", made.random.integer(0, 1)},
                    {"pads", std::vector<int64_t>{1, 0, 0, 1}}});
}
Result<Node> concat_sample(EditView edit, uint64_t seed) {
  QuantizedSample made(edit, seed);
  std::vector<int64_t> dims = made.random.shape(1, 4);
  auto axis = made.random.integer(0, static_cast<int64_t>(dims.size()) - 1);
  std::vector<Value> inputs{made.scale(), made.zero()};
  for (int64_t i = made.random.integer(1, 3); i > 0; --i) {
    dims[static_cast<size_t>(axis)] = made.random.integer(1, 4);
    for (Value value : made.triple(dims))
      inputs.push_back(value);
  }
  return made.node("QLinearConcat", inputs, {{"axis", axis}});
}
Result<Node> gemm_sample(EditView edit, uint64_t seed) {
  QuantizedSample made(edit, seed);
  int64_t m = made.random.integer(1, 4), n = made.random.integer(1, 4), flip = seed % 2;
  std::vector<Value> inputs = made.triple({m, 3});
  std::vector<int64_t> weight = flip ? std::vector<int64_t>{n, 3} : std::vector<int64_t>{3, n};
  for (Value value : made.triple(weight))
    inputs.push_back(value);
  TN_TRY(bias, made.random.input(TN_I32, {n}));
  inputs.push_back(bias);
  if (made.random.coin()) inputs.insert(inputs.end(), {made.scale(), made.zero()});
  return made.node("QGemm", inputs, {{"transB", flip}});
}

#define PAIR_OPERANDS                                                                    \
  "a: T, a_scale: f32[one], a_zero: T[one]?, b: T, b_scale: f32[one], b_zero: T[one]?, " \
  "y_scale: f32[one], y_zero: T[one]?"
#define UNARY_OPERANDS(axes) \
  "x: T" axes ", x_scale: f32[one], x_zero: T[one]?, y_scale: f32[one], y_zero: T[one]?"

constexpr tn_op kAdd = op_row({.type = "QLinearAdd",
                               .domain = kDomain,
                               .shape = shape<pair_shape, PAIR_OPERANDS>,
                               .decompose = decompose<add_decompose>,
                               .sample = sample<add_sample>});
constexpr tn_op kMul = op_row({.type = "QLinearMul",
                               .domain = kDomain,
                               .shape = shape<pair_shape, PAIR_OPERANDS>,
                               .decompose = decompose<mul_decompose>,
                               .sample = sample<mul_sample>});
constexpr tn_op kWhere =
    op_row({.type = "QLinearWhere",
            .domain = kDomain,
            .shape = shape<where_shape,
                           "condition: bool, x: T, x_scale: f32[one], x_zero: T[one], y: T, "
                           "y_scale: f32[one], y_zero: T[one], z_scale: f32[one], z_zero: T[one]">,
            .decompose = decompose<where_decompose>,
            .sample = sample<where_sample>});
constexpr tn_op kSigmoid = op_row({.type = "QLinearSigmoid",
                                   .domain = kDomain,
                                   .shape = shape<unary_shape, UNARY_OPERANDS("")>,
                                   .decompose = decompose<sigmoid_decompose>,
                                   .sample = sample<sigmoid_sample>});
constexpr tn_op kLeaky =
    op_row({.type = "QLinearLeakyRelu",
            .domain = kDomain,
            .attributes = R"([{"name": "alpha", "type": "float", "default": 0.01}])",
            .shape = shape<unary_shape, UNARY_OPERANDS("")>,
            .decompose = decompose<leaky_decompose>,
            .sample = sample<leaky_sample>});
constexpr tn_op kSoftmax = op_row({.type = "QLinearSoftmax",
                                   .domain = kDomain,
                                   .attributes = R"([{"name": "axis", "type": "int", "default": -1},
                              {"name": "opset", "type": "int", "default": 13}])",
                                   .shape = shape<unary_shape, UNARY_OPERANDS("")>,
                                   .decompose = decompose<softmax_decompose>,
                                   .sample = sample<softmax_sample>});
constexpr tn_op kGlobal =
    op_row({.type = "QLinearGlobalAveragePool",
            .domain = kDomain,
            .attributes = R"([{"name": "channels_last", "type": "int", "default": 0}])",
            .shape = shape<global_shape, UNARY_OPERANDS("[n c s..]")>,
            .decompose = decompose<global_decompose>,
            .sample = sample<global_sample>});
constexpr tn_op kPool =
    op_row({.type = "QLinearAveragePool",
            .domain = kDomain,
            .attributes =
                "[" TENON_WINDOW_ATTRIBUTES R"(,{"name": "ceil_mode", "type": "int", "default": 0},
                    {"name": "channels_last", "type": "int", "default": 0},
                    {"name": "count_include_pad", "type": "int", "default": 0},
                    {"name": "kernel_shape", "type": "ints"}])",
            .shape = shape<pool_shape, UNARY_OPERANDS("[n c s..]")>,
            .decompose = decompose<pool_decompose>,
            .sample = sample<pool_sample>});
constexpr tn_op kConcat =
    op_row({.type = "QLinearConcat",
            .domain = kDomain,
            .attributes = R"([{"name": "axis", "type": "int"}])",
            .shape = shape<concat_shape, "y_scale: f32[one], y_zero: any[one], tensors: any...">,
            .decompose = decompose<concat_decompose>,
            .sample = sample<concat_sample>});
constexpr tn_op kGemm =
    op_row({.type = "QGemm",
            .domain = kDomain,
            .attributes = R"([{"name": "alpha", "type": "float", "default": 1.0},
                       {"name": "transA", "type": "int", "default": 0},
                       {"name": "transB", "type": "int", "default": 0}])",
            .shape = shape<gemm_shape,
                           "a: T[_ _], a_scale: f32[one], a_zero: T[one], b: U[_ _], b_scale: f32, "
                           "b_zero: U, c: i32?, y_scale: f32[one]?, y_zero: T[one]?">,
            .decompose = decompose<gemm_decompose>,
            .sample = sample<gemm_sample>});

}  // namespace

TENON_OPS(quantized_operators,
          &kAdd,
          &kMul,
          &kWhere,
          &kSigmoid,
          &kLeaky,
          &kSoftmax,
          &kGlobal,
          &kPool,
          &kConcat,
          &kGemm)

}  // namespace tenon::ops
