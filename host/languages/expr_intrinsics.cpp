// SPDX-License-Identifier: Apache-2.0
#include "languages/expr_intrinsics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace tenon::host {
namespace {

using Integer = Intrinsic::Integer;
using Real = Intrinsic::Real;

bool is_signed(ExprType type) {
  return type.domain == TN_EXPR_DOMAIN_INT;
}
int64_t as_signed(uint64_t value) {
  return static_cast<int64_t>(value);
}
bool less(uint64_t a, uint64_t b, ExprType type) {
  return is_signed(type) ? as_signed(a) < as_signed(b) : a < b;
}
uint64_t magnitude(uint64_t value, ExprType type) {
  return is_signed(type) && as_signed(value) < 0 ? 0 - value : value;
}

// x/0 is 0 and lowest/-1 wraps: an element must never trap.
uint64_t divide(uint64_t a, uint64_t b, ExprType type) {
  if (b == 0) return 0;
  const uint64_t size = magnitude(a, type) / magnitude(b, type);
  const bool negative = is_signed(type) && (as_signed(a) < 0) != (as_signed(b) < 0);
  return negative ? 0 - size : size;
}
uint64_t remainder(uint64_t a, uint64_t b, ExprType type) {
  return b == 0 ? 0 : a - divide(a, b, type) * b;
}
uint64_t modulo(uint64_t a, uint64_t b, ExprType type) {
  const uint64_t rest = remainder(a, b, type);
  const bool fix = is_signed(type) && rest != 0 && (as_signed(rest) < 0) != (as_signed(b) < 0);
  return fix ? rest + b : rest;
}
double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
uint64_t power(uint64_t base, uint64_t exponent, ExprType type) {
  if (is_signed(type) && as_signed(exponent) < 0) {  // 1 / base^n, truncated
    const bool unit = base == 1 || as_signed(base) == -1;
    return unit ? (exponent & 1 ? base : 1) : 0;
  }
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}
uint64_t shift_left(uint64_t a, uint64_t count, ExprType type) {
  return count < type.bits ? a << count : 0;
}
uint64_t shift_right(uint64_t a, uint64_t count, ExprType type) {
  const bool negative = is_signed(type) && as_signed(a) < 0;
  if (count >= type.bits) return negative ? ~uint64_t{0} : 0;
  return negative ? ~(~a >> count) : a >> count;
}

double sign(double x) {
  return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0));
}
double minimum(double a, double b) {
  return std::isnan(a) ? a : (std::isnan(b) || b < a ? b : a);
}
double maximum(double a, double b) {
  return std::isnan(a) ? a : (std::isnan(b) || b > a ? b : a);
}
double sigmoid(double x) {  // neither branch overflows
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double small = std::exp(x);
  return small / (1 + small);
}

// Rows are short: R and I name the arguments a, b, c and, for integers, the type t.
#define R(e) [](double a, double b, double c) -> double { return (void)a, (void)b, (void)c, (e); }
#define I(e)                                                             \
  [](uint64_t a, uint64_t b, uint64_t c, ExprType t) -> uint64_t {       \
    return (void)a, (void)b, (void)c, (void)t, static_cast<uint64_t>(e); \
  }
// clang-format off
const Intrinsic kRows[] = {
  {TN_EXPR_NEG,        1, "neg", "-", kPrecedenceUnary, 0, R(-a), I(0 - a)},
  {TN_EXPR_ABS,        1, "abs", "", 0, 0, R(std::fabs(a)), I(magnitude(a, t))},
  {TN_EXPR_SIGN,       1, "sign", "", 0, 0, R(sign(a)), I(a == 0 ? 0 : less(a, 0, t) ? -1 : 1)},
  {TN_EXPR_EXP,        1, "exp", "", 0, 0, R(std::exp(a)), nullptr},
  {TN_EXPR_EXPM1,      1, "expm1", "", 0, 0, R(std::expm1(a)), nullptr},
  {TN_EXPR_LOG,        1, "log", "", 0, 0, R(std::log(a)), nullptr},
  {TN_EXPR_LOG1P,      1, "log1p", "", 0, 0, R(std::log1p(a)), nullptr},
  {TN_EXPR_SQRT,       1, "sqrt", "", 0, 0, R(std::sqrt(a)), nullptr},
  {TN_EXPR_RSQRT,      1, "rsqrt", "", 0, 0, R(1 / std::sqrt(a)), nullptr},
  {TN_EXPR_RECIPROCAL, 1, "reciprocal", "", 0, 0, R(1 / a), nullptr},
  {TN_EXPR_ERF,        1, "erf", "", 0, 0, R(std::erf(a)), nullptr},
  {TN_EXPR_TANH,       1, "tanh", "", 0, 0, R(std::tanh(a)), nullptr},
  {TN_EXPR_SIGMOID,    1, "sigmoid", "", 0, 0, R(sigmoid(a)), nullptr},
  {TN_EXPR_SIN,        1, "sin", "", 0, 0, R(std::sin(a)), nullptr},
  {TN_EXPR_COS,        1, "cos", "", 0, 0, R(std::cos(a)), nullptr},
  {TN_EXPR_TAN,        1, "tan", "", 0, 0, R(std::tan(a)), nullptr},
  {TN_EXPR_ASIN,       1, "asin", "", 0, 0, R(std::asin(a)), nullptr},
  {TN_EXPR_ACOS,       1, "acos", "", 0, 0, R(std::acos(a)), nullptr},
  {TN_EXPR_ATAN,       1, "atan", "", 0, 0, R(std::atan(a)), nullptr},
  {TN_EXPR_SINH,       1, "sinh", "", 0, 0, R(std::sinh(a)), nullptr},
  {TN_EXPR_COSH,       1, "cosh", "", 0, 0, R(std::cosh(a)), nullptr},
  {TN_EXPR_ASINH,      1, "asinh", "", 0, 0, R(std::asinh(a)), nullptr},
  {TN_EXPR_ACOSH,      1, "acosh", "", 0, 0, R(std::acosh(a)), nullptr},
  {TN_EXPR_ATANH,      1, "atanh", "", 0, 0, R(std::atanh(a)), nullptr},
  {TN_EXPR_FLOOR,      1, "floor", "", 0, 0, R(std::floor(a)), I(a)},
  {TN_EXPR_CEIL,       1, "ceil", "", 0, 0, R(std::ceil(a)), I(a)},
  {TN_EXPR_ROUND,      1, "round", "", 0, 0, R(std::nearbyint(a)), I(a)},
  {TN_EXPR_TRUNC,      1, "trunc", "", 0, 0, R(std::trunc(a)), I(a)},
  {TN_EXPR_NOT,        1, "not", "!", kPrecedenceUnary, kBoolean, R(a == 0), I(a == 0)},
  {TN_EXPR_ISNAN,      1, "isnan", "", 0, kBoolean, R(std::isnan(a)), I(0)},
  {TN_EXPR_ISINF,      1, "isinf", "", 0, kBoolean, R(std::isinf(a)), I(0)},
  {TN_EXPR_BITNOT,     1, "bitnot", "~", kPrecedenceUnary, 0, nullptr, I(~a)},
  {TN_EXPR_ADD,    2, "add", "+", 10, kCommutes | kFoldable, R(a + b), I(a + b)},
  {TN_EXPR_SUB,    2, "sub", "-", 10, 0, R(a - b), I(a - b)},
  {TN_EXPR_MUL,    2, "mul", "*", 11, kCommutes | kFoldable, R(a * b), I(a * b)},
  {TN_EXPR_DIV,    2, "div", "/", 11, 0, R(a / b), I(divide(a, b, t))},
  {TN_EXPR_POW,    2, "pow", "", 0, 0, R(std::pow(a, b)), I(power(a, b, t))},
  {TN_EXPR_MIN,    2, "min", "", 0, kFoldable, R(minimum(a, b)), I(less(b, a, t) ? b : a)},
  {TN_EXPR_MAX,    2, "max", "", 0, kFoldable, R(maximum(a, b)), I(less(a, b, t) ? b : a)},
  {TN_EXPR_MOD,    2, "mod", "", 0, 0, R(modulo(a, b)), I(modulo(a, b, t))},
  {TN_EXPR_FMOD,   2, "fmod", "", 0, 0, R(std::fmod(a, b)), I(remainder(a, b, t))},
  {TN_EXPR_ATAN2,  2, "atan2", "", 0, 0, R(std::atan2(a, b)), nullptr},
  {TN_EXPR_EQ,     2, "eq", "==", 7, kCommutes | kBoolean, R(a == b), I(a == b)},
  {TN_EXPR_NE,     2, "ne", "!=", 7, kCommutes | kBoolean, R(a != b), I(a != b)},
  {TN_EXPR_LT,     2, "lt", "<", 8, kBoolean, R(a < b), I(less(a, b, t))},
  {TN_EXPR_LE,     2, "le", "<=", 8, kBoolean, R(a <= b), I(!less(b, a, t))},
  {TN_EXPR_GT,     2, "gt", ">", 8, kBoolean, R(a > b), I(less(b, a, t))},
  {TN_EXPR_GE,     2, "ge", ">=", 8, kBoolean, R(a >= b), I(!less(a, b, t))},
  {TN_EXPR_AND,    2, "and", "&&", 3, kCommutes | kFoldable | kBoolean, R(a != 0 && b != 0),
   I(a != 0 && b != 0)},
  {TN_EXPR_OR,     2, "or", "||", 2, kCommutes | kFoldable | kBoolean, R(a != 0 || b != 0),
   I(a != 0 || b != 0)},
  {TN_EXPR_XOR,    2, "xor", "", 0, kCommutes | kFoldable | kBoolean, R((a != 0) != (b != 0)),
   I((a != 0) != (b != 0))},
  {TN_EXPR_BITAND, 2, "bitand", "&", 6, kCommutes | kFoldable, nullptr, I(a & b)},
  {TN_EXPR_BITOR,  2, "bitor", "|", 4, kCommutes | kFoldable, nullptr, I(a | b)},
  {TN_EXPR_BITXOR, 2, "bitxor", "^", 5, kCommutes | kFoldable, nullptr, I(a ^ b)},
  {TN_EXPR_SHL,    2, "shl", "<<", 9, 0, nullptr, I(shift_left(a, b, t))},
  {TN_EXPR_SHR,    2, "shr", ">>", 9, 0, nullptr, I(shift_right(a, b, t))},
  {TN_EXPR_SELECT, 3, "select", "", kPrecedenceChoice, 0, R(a != 0 ? b : c), I(a != 0 ? b : c)},
};
// clang-format on
#undef R
#undef I

}  // namespace

std::span<const Intrinsic> intrinsics() {
  return kRows;
}

const Intrinsic* find_intrinsic(uint32_t op) {
  static const auto by_number = [] {
    std::array<const Intrinsic*, TN_EXPR_SELECT + 1> table = {};
    for (const Intrinsic& row : kRows)
      table[row.op] = &row;
    return table;
  }();
  return op < by_number.size() ? by_number[op] : nullptr;
}

const Intrinsic* find_intrinsic(std::string_view name) {
  const auto row = std::ranges::find(kRows, name, &Intrinsic::name);
  return row == std::end(kRows) ? nullptr : row;
}

uint64_t wrap(uint64_t value, ExprType type) {
  if (type.bits == 0 || type.bits >= 64) return value;
  const uint64_t mask = (uint64_t{1} << type.bits) - 1;
  const bool negative = is_signed(type) && (value >> (type.bits - 1) & 1);
  return negative ? value | ~mask : value & mask;
}

uint64_t to_integer(double value) {
  return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                   : static_cast<uint64_t>(value);
}

bool is_constant_of(ExprType type, double value) {
  if (type.domain == TN_EXPR_DOMAIN_FLOAT) return true;
  constexpr double kMostExact = 9007199254740992.0;  // 2^53: integers below are exact in double
  const bool is_whole = std::trunc(value) == value && std::fabs(value) <= kMostExact;
  return is_whole && (value >= 0 || is_signed(type)) &&
         wrap(to_integer(value), type) == to_integer(value);
}

}  // namespace tenon::host
