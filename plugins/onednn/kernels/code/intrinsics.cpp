// SPDX-License-Identifier: Apache-2.0
// Infinities, NaN, signed zeros and denormals give what C's functions give. Worst errors against
// f64 over a sweep of all exponents: sin, cos within 1 ulp, asin, acos, atan 2, exp, log, sqrt 1.1,
// tan 2.5, tanh 1.1 (in AVX2 1.9), log1p 1.5, erf 2.2, sigmoid and expm1 within 3, hyperbolic
// functions and their inverses within 4.

#include "intrinsics.h"

#include <cmath>
#include <limits>

#include "tenon/expr.h"

#include "../kernel_table.h"
#include "approximation.h"
#include "elementary.h"

namespace tenon::onednn::kernels::code {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// exp(-|x|) never overflows, so that the tail keeps its denormals.
Value sigmoid(VectorCode& c, Value x) {
  Value one = c.number(1.0F);
  Value e = exp(c, c.bit_or(x, c.bits(0x80000000)));
  Value numerator = c.blend(Compare::kLt, x, c.number(0.0F), e, one);
  return c.div(numerator, c.add(e, one));
}

// log(1+x) with the rounding error of 1+x given back (W. Kahan's correction).
Value log1p(VectorCode& c, Value x) {
  Value one = c.number(1.0F);
  Value u = c.add(x, one);
  Value logarithm = log(c, u);
  Value lost = c.div(c.sub(x, c.sub(u, one)), u);
  Value result = c.blend(Compare::kGt, u, c.number(0.0F), c.add(logarithm, lost), logarithm);
  result = c.blend(Compare::kLt, u, c.number(kInfinity), result, logarithm);
  return c.blend(Compare::kEq, u, one, x, result);
}

// Below 1 in magnitude a polynomial, else from exp, where the subtraction loses nothing.
double expm1_tail(double x) {
  if (std::fabs(x) < 1e-4) return 0.5 + x / 6;  // the difference would be rounding only
  return (std::expm1(x) - x) / (x * x);
}
Value expm1(VectorCode& c, Value x) {
  static const std::vector<double> kTail = interpolate(expm1_tail, -1.0, 1.0, 8);
  Value near = c.fma(c.mul(x, x), polynomial(c, kTail, x), x);
  Value far = c.sub(exp(c, x), c.number(1.0F));
  return c.blend(Compare::kLt, c.absolute(x), c.number(1.0F), c.or_and(near, x, c.bits(0x80000000)),
                 far);
}

// From here on the square of x is lost in that of 1 beside it, or the other way round.
constexpr float kFar = 4096.0F;
Value log_of_twice(VectorCode& c, Value x) {
  return c.add(log(c, x), c.number(0.693147181F));
}

Value asinh(VectorCode& c, Value x) {
  Value one = c.number(1.0F);
  Value a = c.absolute(x);
  Value square = c.mul(a, a);
  Value rest = c.div(square, c.add(one, c.sqrt(c.add(square, one))));
  Value near = log1p(c, c.add(a, rest));
  return with_sign_of(c, c.blend(Compare::kGt, a, c.number(kFar), log_of_twice(c, a), near), x);
}

Value acosh(VectorCode& c, Value x) {
  Value t = c.sub(x, c.number(1.0F));
  Value near = log1p(c, c.add(t, c.sqrt(c.mul(t, c.add(t, c.number(2.0F))))));
  Value number = c.blend(Compare::kGt, x, c.number(kFar), log_of_twice(c, x), near);
  return c.blend(Compare::kLt, x, c.number(1.0F), c.number(std::numeric_limits<float>::quiet_NaN()),
                 number);
}

Value atanh(VectorCode& c, Value x) {
  Value a = c.absolute(x);
  Value twice = c.div(c.add(a, a), c.sub(c.number(1.0F), a));
  return with_sign_of(c, c.mul(c.number(0.5F), log1p(c, twice)), x);
}

// exp(a) / 2, where exp(a) alone may overflow.
Value half_exp(VectorCode& c, Value a) {
  Value root = exp(c, c.mul(a, c.number(0.5F)));
  return c.mul(c.mul(root, c.number(0.5F)), root);
}
constexpr float kMostExp = 88.0F;

Value sinh(VectorCode& c, Value x) {
  Value a = c.absolute(x);
  Value e = expm1(c, a);
  Value near = c.mul(c.number(0.5F), c.add(e, c.div(e, c.add(e, c.number(1.0F)))));
  return with_sign_of(c, c.blend(Compare::kGt, a, c.number(kMostExp), half_exp(c, a), near), x);
}

Value cosh(VectorCode& c, Value x) {
  Value a = c.absolute(x);
  Value e = exp(c, a);
  Value near = c.mul(c.number(0.5F), c.add(e, c.div(c.number(1.0F), e)));
  return c.blend(Compare::kGt, a, c.number(kMostExp), half_exp(c, a), near);
}

Value truth(VectorCode& c, Compare compare, Value a, Value b) {
  return c.blend(compare, a, b, c.number(1.0F), c.number(0.0F));
}

Value sign(VectorCode& c, Value a) {
  Value zero = c.number(0.0F);
  Value negative = c.blend(Compare::kLt, a, zero, c.number(-1.0F), a);
  return c.blend(Compare::kGt, a, zero, c.number(1.0F), negative);
}

// The instruction gives its second operand where either is NaN: a constant goes first, and for a
// NaN in the first of two others there is a blend.
Value least_or_most(VectorCode& c, Value a, Value b, Value (VectorCode::*choose)(Value, Value)) {
  if (c.is_real_number(a)) return (c.*choose)(a, b);
  if (c.is_real_number(b)) return (c.*choose)(b, a);
  return c.blend(Compare::kUnordered, a, a, a, (c.*choose)(a, b));
}

Value logic(VectorCode& c, Value a, Value b, Value (VectorCode::*combine)(Value, Value)) {
  Value zero = c.number(0.0F);
  return (c.*combine)(truth(c, Compare::kNe, a, zero), truth(c, Compare::kNe, b, zero));
}

struct Row {
  uint32_t op;
  Intrinsic make;
};
#define TENON_ROW(op, expression)                                                                 \
  Row {                                                                                           \
    op, [](VectorCode& v, Value a, [[maybe_unused]] Value b, [[maybe_unused]] Value c) -> Value { \
      return expression;                                                                          \
    }                                                                                             \
  }
const Row kRows[] = {
    TENON_ROW(TN_EXPR_NEG, v.negate(a)),
    TENON_ROW(TN_EXPR_ABS, v.absolute(a)),
    TENON_ROW(TN_EXPR_SIGN, sign(v, a)),
    TENON_ROW(TN_EXPR_EXP, exp(v, a)),
    TENON_ROW(TN_EXPR_EXPM1, expm1(v, a)),
    TENON_ROW(TN_EXPR_LOG, log(v, a)),
    TENON_ROW(TN_EXPR_LOG1P, log1p(v, a)),
    TENON_ROW(TN_EXPR_SQRT, v.sqrt(a)),
    TENON_ROW(TN_EXPR_RSQRT, v.div(v.number(1.0F), v.sqrt(a))),
    TENON_ROW(TN_EXPR_RECIPROCAL, v.div(v.number(1.0F), a)),
    TENON_ROW(TN_EXPR_ERF, erf(v, a)),
    TENON_ROW(TN_EXPR_TANH, tanh(v, a)),
    TENON_ROW(TN_EXPR_SIGMOID, sigmoid(v, a)),
    TENON_ROW(TN_EXPR_SIN, sin(v, a)),
    TENON_ROW(TN_EXPR_COS, cos(v, a)),
    TENON_ROW(TN_EXPR_TAN, tan(v, a)),
    TENON_ROW(TN_EXPR_ASIN, asin(v, a)),
    TENON_ROW(TN_EXPR_ACOS, acos(v, a)),
    TENON_ROW(TN_EXPR_ATAN, atan(v, a)),
    TENON_ROW(TN_EXPR_SINH, sinh(v, a)),
    TENON_ROW(TN_EXPR_COSH, cosh(v, a)),
    TENON_ROW(TN_EXPR_ASINH, asinh(v, a)),
    TENON_ROW(TN_EXPR_ACOSH, acosh(v, a)),
    TENON_ROW(TN_EXPR_ATANH, atanh(v, a)),
    TENON_ROW(TN_EXPR_FLOOR, v.round(a, Direction::kDown)),
    TENON_ROW(TN_EXPR_CEIL, v.round(a, Direction::kUp)),
    TENON_ROW(TN_EXPR_ROUND, v.round(a, Direction::kEven)),
    TENON_ROW(TN_EXPR_TRUNC, v.round(a, Direction::kZero)),
    TENON_ROW(TN_EXPR_NOT, truth(v, Compare::kEq, a, v.number(0.0F))),
    TENON_ROW(TN_EXPR_ISNAN, truth(v, Compare::kUnordered, a, a)),
    TENON_ROW(TN_EXPR_ISINF, truth(v, Compare::kEq, v.absolute(a), v.number(kInfinity))),
    TENON_ROW(TN_EXPR_ADD, v.add(a, b)),
    TENON_ROW(TN_EXPR_SUB, v.sub(a, b)),
    TENON_ROW(TN_EXPR_MUL, v.mul(a, b)),
    TENON_ROW(TN_EXPR_DIV, v.div(a, b)),
    TENON_ROW(TN_EXPR_MIN, least_or_most(v, a, b, &VectorCode::min)),
    TENON_ROW(TN_EXPR_MAX, least_or_most(v, a, b, &VectorCode::max)),
    TENON_ROW(TN_EXPR_EQ, truth(v, *comparison(TN_EXPR_EQ), a, b)),
    TENON_ROW(TN_EXPR_NE, truth(v, *comparison(TN_EXPR_NE), a, b)),
    TENON_ROW(TN_EXPR_LT, truth(v, *comparison(TN_EXPR_LT), a, b)),
    TENON_ROW(TN_EXPR_LE, truth(v, *comparison(TN_EXPR_LE), a, b)),
    TENON_ROW(TN_EXPR_GT, truth(v, *comparison(TN_EXPR_GT), a, b)),
    TENON_ROW(TN_EXPR_GE, truth(v, *comparison(TN_EXPR_GE), a, b)),
    TENON_ROW(TN_EXPR_AND, logic(v, a, b, &VectorCode::bit_and)),
    TENON_ROW(TN_EXPR_OR, logic(v, a, b, &VectorCode::bit_or)),
    TENON_ROW(TN_EXPR_XOR, logic(v, a, b, &VectorCode::bit_xor)),
    TENON_ROW(TN_EXPR_SELECT, v.blend(Compare::kNe, a, v.number(0.0F), b, c)),
    TENON_ROW(kOpMulAdd, v.fma(a, b, c)),
    TENON_ROW(kOpMulSub, v.fma(a, b, v.negate(c))),
    TENON_ROW(kOpNegMulAdd, v.fnma(a, b, c)),
};
const Row kShortRows[] = {
    TENON_ROW(TN_EXPR_EXP, short_exp(v, a)),
    TENON_ROW(TN_EXPR_ERF, short_erf(v, a)),
};
#undef TENON_ROW

}  // namespace

std::optional<Compare> comparison(uint32_t op) {
  constexpr Compare kInOrder[] = {Compare::kEq, Compare::kNe, Compare::kLt,
                                  Compare::kLe, Compare::kGt, Compare::kGe};
  if (op < TN_EXPR_EQ || op > TN_EXPR_GE) return std::nullopt;
  return kInOrder[op - TN_EXPR_EQ];
}

Value whole_power(VectorCode& c, Value a, int power) {
  Value half = power > 3 ? whole_power(c, a, power / 2) : a;
  Value even = c.mul(half, half);
  return power % 2 == 0 ? even : c.mul(even, a);
}

Intrinsic intrinsic(uint32_t op, Precision precision) {
  if (precision == Precision::kBf16) {
    for (const Row& row : kShortRows) {
      if (row.op == op) return row.make;
    }
  }
  for (const Row& row : kRows) {
    if (row.op == op) return row.make;
  }
  return nullptr;
}

}  // namespace tenon::onednn::kernels::code
