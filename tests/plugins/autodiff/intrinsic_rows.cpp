// SPDX-License-Identifier: Apache-2.0
// One operator for each intrinsic of floats, so that its slope can be asked for by itself.
#include <array>

#include "tenon/sdk/role/op.hpp"

namespace {

#define ROW(name, expression) \
  tenon::op_row({.type = name, .domain = "slope", .traits = TN_OP_POINTWISE, .expr = expression})
#define UNARY(name) ROW(#name, #name "(x)")
#define BINARY(name) ROW(#name, #name "(x, y)")
constexpr tn_op kRows[] = {
    UNARY(neg),
    UNARY(abs),
    UNARY(sign),
    UNARY(exp),
    UNARY(expm1),
    UNARY(log),
    UNARY(log1p),
    UNARY(sqrt),
    UNARY(rsqrt),
    UNARY(erf),
    UNARY(tanh),
    UNARY(reciprocal),
    UNARY(sigmoid),
    UNARY(sin),
    UNARY(cos),
    UNARY(tan),
    UNARY(asin),
    UNARY(acos),
    UNARY(atan),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(asinh),
    UNARY(acosh),
    UNARY(atanh),
    UNARY(floor),
    UNARY(ceil),
    UNARY(round),
    UNARY(trunc),
    BINARY(add),
    BINARY(sub),
    BINARY(mul),
    BINARY(div),
    BINARY(pow),
    BINARY(min),
    BINARY(max),
    BINARY(mod),
    BINARY(fmod),
    BINARY(atan2),
    ROW("select", "x > y ? x : 2*y"),
    // Kinks that make up for each other.
    ROW("softplus", "max(x, 0) + log1p(exp(-abs(x)))"),
    ROW("softplus_by_max", "max(x, 0) + log1p(exp(-max(x, -x)))"),
    ROW("softplus_by_min", "x - min(x, 0) + log1p(exp(min(x, -x)))"),
    ROW("logaddexp", "max(x, y) + log1p(exp(-abs(x - y)))"),
    ROW("identity", "max(x, 0) + min(x, 0)"),
    ROW("half_of_both", "0.5*(x + abs(x)) - max(x, 0) + x"),
    ROW("clipped_and_rest", "min(max(x, -1), 1) + max(x - 1, 0) + min(x + 1, 0)"),
    ROW("square_by_abs", "abs(x)*abs(x)"),
    ROW("square_on_one_side", "max(x, 0)*max(x, 0)"),
    ROW("exp_of_abs", "exp(abs(x))"),
    ROW("abs_of_limited", "abs(max(x, -1) + 1)"),
    ROW("mish", "x*tanh(max(x, 0) + log1p(exp(-abs(x))))"),
};
#undef BINARY
#undef UNARY
#undef ROW

constexpr size_t kCount = std::size(kRows);
constexpr auto kPointers = [] {
  std::array<const tn_op*, kCount> out{};
  for (size_t i = 0; i < kCount; ++i)
    out[i] = &kRows[i];
  return out;
}();

}  // namespace

TENON_OPS_TABLE(intrinsic_rows, kPointers.data(), kCount)
