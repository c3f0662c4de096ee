// SPDX-License-Identifier: Apache-2.0
// Pointwise operators: one row each. The expression is the operator (abi/expr.md): reference,
// fused loops, int8 tables and gradients all read it. Types and broadcasting follow from it.
#include <array>
#include <utility>

#include "sampling.hpp"

namespace tenon::ops {
namespace {

constexpr const char* kTable = "table";      // in int8: a table over the 256 values
constexpr const char* kRequant = "requant";  // in int8: own scales in and out

struct Row {
  const char* type;
  uint64_t since;
  int arity;  // of a sample; -1: variadic, two or three
  const char* expr;
  const char* attributes = "[]";
  const char* quant = "";
  uint32_t dtype = TN_F32;  // of a sample's inputs
  uint32_t traits = 0;
  const char* cast = "";               // mixed precision; without a word inputs are promoted
  decltype(tn_op::vjp) vjp = nullptr;  // where the expression's own slopes are not the usual ones
};
constexpr const char* kWide = "cuda=fp32";  // overflows or loses too much in float16

constexpr uint32_t kCommutes = TN_OP_COMMUTATIVE;
#define ALPHA(value) R"([{"name": "alpha", "type": "float", "default": )" value "}]"
#define ALPHA_BETA(a, b)                                 \
  R"([{"name": "alpha", "type": "float", "default": )" a \
  R"(}, {"name": "beta", "type": "float", "default": )" b "}]"

// What says on which side of a limit an operand was: the result, which later layers keep for their
// own gradients, so that the operand need not be kept. A result of 16 bits may have lost a denormal
// number, which kernels of bfloat16 flush.
Value result_or_operand(const Gradients& g) {
  const uint32_t dtype = g.in(0).dtype();
  return dtype == TN_F32 || dtype == TN_F64 ? g.out() : g.in(0);
}

// 0 at 0, as every framework has it; max(x, 0) has 0.5 there.
Status relu_vjp(Gradients& g) {
  Value zero = g.number(0, g.in(0).dtype());
  Value is_on = g.op("Greater", {result_or_operand(g), zero});
  g.set(0, g.op("Where", {is_on, g.cotangent(), zero}));
  return {};
}

// At a limit x has no slope. Where both limits meet, the upper one counts.
Status clip_vjp(Gradients& g) {
  Value zero = g.number(0, g.in(0).dtype()), dy = g.cotangent(), seen = result_or_operand(g);
  Value is_high = g.in(2) ? g.op("GreaterOrEqual", {seen, g.in(2)}) : Value{};
  Value is_low = g.in(1) ? g.op("LessOrEqual", {seen, g.in(1)}) : Value{};
  Value is_at_limit = is_high && is_low ? g.op("Or", {is_low, is_high})
                      : is_high         ? is_high
                                        : is_low;
  if (g.wanted(0)) g.set(0, is_at_limit ? g.op("Where", {is_at_limit, zero, dy}) : dy);
  if (g.wanted(1)) {
    if (is_high) is_low = g.op("And", {is_low, g.op("Not", {is_high})});
    g.set(1, g.op("Where", {is_low, dy, zero}));
  }
  if (g.wanted(2)) g.set(2, g.op("Where", {is_high, dy, zero}));
  return {};
}

// The slope at 0 is y, as PyTorch has it, though the value there is x whatever y is.
Status prelu_vjp(Gradients& g) {
  Value x = g.in(0), y = g.in(1), dy = g.cotangent(), zero = g.number(0, x.dtype());
  if (g.wanted(0)) g.set(0, g.op("Where", {g.op("Greater", {x, zero}), dy, g.op("Mul", {dy, y})}));
  if (g.wanted(1)) g.set(1, g.op("Where", {g.op("Less", {x, zero}), g.op("Mul", {dy, x}), zero}));
  return {};
}

// One Sigmoid in place of what the expression's pieces give.
Status softplus_vjp(Gradients& g) {
  g.set(0, g.op("Mul", {g.cotangent(), g.op("Sigmoid", {g.in(0)})}));
  return {};
}

// As its expression says, but by operators whose slopes go on, and with an infinity times 0 as 0.
Status mish_vjp(Gradients& g) {
  Value x = g.in(0), t = g.op("Tanh", {g.op("Softplus", {x})});
  Value zero = g.number(0, x.dtype()), one = g.number(1, x.dtype());
  Value rest = g.op("Mul", {g.op("Sub", {one, g.op("Mul", {t, t})}), g.op("Sigmoid", {x})});
  Value at = g.op("Where", {g.op("Equal", {rest, zero}), zero, x});
  g.set(0, g.op("Mul", {g.cotangent(), g.op("Add", {t, g.op("Mul", {at, rest})})}));
  return {};
}

constexpr Row kRows[] = {
    // one input
    {"Abs", 13, 1, "abs(x)", "[]", kTable},
    {.type = "Acos", .since = 22, .arity = 1, .expr = "acos(x)", .cast = kWide},
    {"Acosh", 22, 1, "acosh(x)"},
    {.type = "Asin", .since = 22, .arity = 1, .expr = "asin(x)", .cast = kWide},
    {"Asinh", 22, 1, "asinh(x)"},
    {"Atan", 22, 1, "atan(x)", "[]", kTable},
    {"Atanh", 22, 1, "atanh(x)"},
    {"BitwiseNot", 18, 1, "~x", "[]", "", TN_I32},
    {"Ceil", 13, 1, "ceil(x)", "[]", kTable},
    // In Celu, Elu and Selu what is not chosen does not overflow: else its slope were no number.
    {"Celu", 12, 1, "x > 0 ? x : alpha*expm1((x > 0 ? 0 : x)/alpha)", ALPHA("1.0"), kTable},
    {"Cos", 22, 1, "cos(x)", "[]", kTable},
    {.type = "Cosh", .since = 22, .arity = 1, .expr = "cosh(x)", .quant = kTable, .cast = kWide},
    {"Elu", 22, 1, "x > 0 ? x : alpha*expm1(x > 0 ? 0 : x)", ALPHA("1.0"), kTable},
    {"Erf", 13, 1, "erf(x)", "[]", kTable},
    {.type = "Exp", .since = 13, .arity = 1, .expr = "exp(x)", .quant = kTable, .cast = kWide},
    {"Floor", 13, 1, "floor(x)", "[]", kTable},
    // Beyond 16 tanh is 1, and the cube is kept from an overflow, whose slope would be no number.
    {"Gelu", 20, 1,
     "let u = x < -16 ? -16 : x > 16 ? 16 : x; approximate == \"tanh\""
     " ? 0.5*x*(1 + tanh(0.7978845608028654*(u + 0.044715*u*u*u)))"
     " : 0.5*x*(1 + erf(x*0.7071067811865475))",
     R"([{"name": "approximate", "type": "string", "default": "none"}])", kTable},
    // At their corners these have the slopes that PyTorch has: of the pieces outside.
    {"HardSigmoid", 22, 1, "let u = alpha*x + beta; u <= 0 ? 0 : u >= 1 ? 1 : u",
     ALPHA_BETA("0.2", "0.5"), kTable},
    {"HardSwish", 22, 1, "let u = x/6 + 0.5; x*(u <= 0 ? 0 : u >= 1 ? 1 : u)", "[]", kTable},
    {"IsInf", 20, 1, "isinf(x) && ((x > 0 && detect_positive) || (x < 0 && detect_negative))",
     R"([{"name": "detect_negative", "type": "int", "default": 1},
         {"name": "detect_positive", "type": "int", "default": 1}])"},
    {"IsNaN", 20, 1, "isnan(x)"},
    // Its slope at 0 is alpha, as PyTorch has it.
    {"LeakyRelu", 16, 1, "x > 0 ? x : alpha*x", ALPHA("0.01"), kTable},
    {.type = "Log", .since = 13, .arity = 1, .expr = "log(x)", .cast = kWide},
    {.type = "Mish",
     .since = 22,
     .arity = 1,
     .expr = "x*tanh(max(x, 0) + log1p(exp(-abs(x))))",
     .quant = kTable,
     .vjp = vjp<mish_vjp>},
    {"Neg", 13, 1, "-x", "[]", kTable},
    {"Not", 1, 1, "!x", "[]", "", TN_BOOL},
    {.type = "Reciprocal", .since = 13, .arity = 1, .expr = "reciprocal(x)", .cast = kWide},
    {.type = "Relu",
     .since = 14,
     .arity = 1,
     .expr = "max(x, 0)",
     .quant = kTable,
     .vjp = vjp<relu_vjp>},
    {"Round", 22, 1, "round(x)", "[]", kTable},
    {"Selu", 22, 1, "gamma*(x > 0 ? x : alpha*expm1(x > 0 ? 0 : x))",
     R"([{"name": "alpha", "type": "float", "default": 1.6732631921768188},
         {"name": "gamma", "type": "float", "default": 1.0507010221481323}])",
     kTable},
    {"Shrink", 9, 1, "x < -lambd ? x + bias : (x > lambd ? x - bias : 0)",
     R"([{"name": "bias", "type": "float", "default": 0.0},
         {"name": "lambd", "type": "float", "default": 0.5}])",
     kTable},
    {"Sigmoid", 13, 1, "sigmoid(x)", "[]", kTable},
    {"Sign", 13, 1, "sign(x)", "[]", kTable},
    {"Sin", 22, 1, "sin(x)", "[]", kTable},
    {.type = "Sinh", .since = 22, .arity = 1, .expr = "sinh(x)", .quant = kTable, .cast = kWide},
    {.type = "Softplus",
     .since = 22,
     .arity = 1,
     .expr = "max(x, 0) + log1p(exp(-abs(x)))",
     .quant = kTable,
     .cast = kWide,
     .vjp = vjp<softplus_vjp>},
    {"Softsign", 22, 1, "x/(1 + abs(x))", "[]", kTable},
    {"Sqrt", 13, 1, "sqrt(x)", "[]", kTable},
    {"Swish", 24, 1, "x*sigmoid(alpha*x)", ALPHA("1.0"), kTable},
    {.type = "Tan", .since = 22, .arity = 1, .expr = "tan(x)", .cast = kWide},
    {"Tanh", 13, 1, "tanh(x)", "[]", kTable},
    {"ThresholdedRelu", 22, 1, "x > alpha ? x : 0", ALPHA("1.0"), kTable},

    // two inputs
    {
        .type = "Add",
        .since = 14,
        .arity = 2,
        .expr = "x + y",
        .quant = kRequant,
        .traits = kCommutes,
    },
    {"And", 7, 2, "x && y", "[]", "", TN_BOOL, kCommutes},
    {"BitShift", 11, 2, "direction == \"LEFT\" ? x << y : x >> y",
     R"([{"name": "direction", "type": "string"}])", "", TN_U32},
    {"BitwiseAnd", 18, 2, "x & y", "[]", "", TN_I32, kCommutes},
    {"BitwiseOr", 18, 2, "x | y", "[]", "", TN_I32, kCommutes},
    {"BitwiseXor", 18, 2, "x ^ y", "[]", "", TN_I32, kCommutes},
    {
        .type = "Div",
        .since = 14,
        .arity = 2,
        .expr = "x/y",
        .quant = kRequant,
    },
    {"Equal", 19, 2, "x == y", "[]", "", TN_F32, kCommutes},
    {"Greater", 13, 2, "x > y"},
    {"GreaterOrEqual", 16, 2, "x >= y"},
    {"Less", 13, 2, "x < y"},
    {"LessOrEqual", 16, 2, "x <= y"},
    {"Mod", 13, 2, "fmod == 1 ? fmod(x, y) : mod(x, y)",
     R"([{"name": "fmod", "type": "int", "default": 0}])", "", TN_I32},
    {
        .type = "Mul",
        .since = 14,
        .arity = 2,
        .expr = "x*y",
        .quant = kRequant,
        .traits = kCommutes,
    },
    {"Or", 7, 2, "x || y", "[]", "", TN_BOOL, kCommutes},
    {.type = "Pow", .since = 15, .arity = 2, .expr = "pow(x, y)", .cast = kWide},
    {.type = "PRelu",
     .since = 16,
     .arity = 2,
     .expr = "x < 0 ? y*x : x",
     .quant = kRequant,
     .cast = "cpu=low cuda=low",
     .vjp = vjp<prelu_vjp>},
    {
        .type = "Sub",
        .since = 14,
        .arity = 2,
        .expr = "x - y",
        .quant = kRequant,
    },
    {"SwiGLU", 28, 2, "x*sigmoid(alpha*x)*y", ALPHA("1.0")},
    {"Xor", 7, 2, "xor(x, y)", "[]", "", TN_BOOL, kCommutes},

    // more, or any number
    // At a limit the limit is chosen, so x has no slope there.
    {.type = "Clip",
     .since = 13,
     .arity = 1,
     .expr = "let low = has(y) ? (x <= y ? y : x) : x; has(z) ? (low >= z ? z : low) : low",
     .quant = kTable,
     .vjp = vjp<clip_vjp>},
    {"Max", 13, -1, "fold(max)", "[]", kRequant},
    {"Mean", 13, -1, "fold(add)/n_inputs"},
    {"Min", 13, -1, "fold(min)", "[]", kRequant},
    {"Sum", 13, -1, "fold(add)", "[]", kRequant},
    {"Where", 16, 3, "x ? y : z"},
};
#undef ALPHA
#undef ALPHA_BETA
constexpr size_t kCount = std::size(kRows);

Result<Node> build_sample(const Row& row, EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int arity = row.arity < 0 ? static_cast<int>(random.integer(2, 3)) : row.arity;
  std::vector<int64_t> dims = random.shape(1, 4);
  std::vector<Value> inputs;
  std::string_view type = row.type;
  for (int i = 0; i < arity; ++i) {
    uint32_t dtype = type == "Where" && i == 0 ? TN_BOOL : row.dtype;
    TN_TRY(value, random.input(dtype, i == 0 ? dims : random.broadcastable(dims)));
    inputs.push_back(value);
  }
  std::vector<Attr> attrs;
  if (type == "BitShift") attrs.emplace_back("direction", random.coin() ? "LEFT" : "RIGHT");
  if (type == "Gelu" && random.coin()) attrs.emplace_back("approximate", "tanh");
  return edit.add({.type = type, .inputs = inputs, .attrs = attrs});
}

template <size_t kIndex>
Result<Node> sample_row(EditView edit, uint64_t seed) {
  return build_sample(kRows[kIndex], edit, seed);
}

template <size_t... kIndex>
constexpr std::array<tn_op, kCount> make_rows(std::index_sequence<kIndex...>) {
  return {op_row({.type = kRows[kIndex].type,
                  .since = kRows[kIndex].since,
                  .traits = TN_OP_POINTWISE | kRows[kIndex].traits,
                  .expr = kRows[kIndex].expr,
                  .attributes = kRows[kIndex].attributes,
                  .quant = kRows[kIndex].quant,
                  .sample = sample<sample_row<kIndex>>,
                  .vjp = kRows[kIndex].vjp,
                  .cast = kRows[kIndex].cast})...};
}
constexpr std::array<tn_op, kCount> kOps = make_rows(std::make_index_sequence<kCount>());

constexpr std::array<const tn_op*, kCount> kPointers = [] {
  std::array<const tn_op*, kCount> out{};
  for (size_t i = 0; i < kCount; ++i)
    out[i] = &kOps[i];
  return out;
}();

}  // namespace

TENON_OPS_TABLE(pointwise, kPointers.data(), kCount)

}  // namespace tenon::ops
