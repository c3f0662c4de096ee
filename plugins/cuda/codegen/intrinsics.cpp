// SPDX-License-Identifier: Apache-2.0
#include "intrinsics.hpp"

#include <algorithm>

#include "tenon/expr.h"

namespace tenon::cuda {
namespace {

constexpr Intrinsic kIntrinsics[] = {
    {TN_EXPR_NEG, "-$a", "whole_sub<R>(0, $a)"},
    {TN_EXPR_ABS, "fabs($a)", "($a < 0 ? whole_sub<R>(0, $a) : $a)"},
    {TN_EXPR_SIGN, "sign($a)", "R(($a > 0) - ($a < 0))"},
    {TN_EXPR_EXP, "exp($a)", nullptr},
    {TN_EXPR_EXPM1, "expm1($a)", nullptr},
    {TN_EXPR_LOG, "log($a)", nullptr},
    {TN_EXPR_LOG1P, "log1p($a)", nullptr},
    {TN_EXPR_SQRT, "sqrt($a)", nullptr},
    {TN_EXPR_RSQRT, "R(1) / sqrt($a)", nullptr},
    {TN_EXPR_RECIPROCAL, "R(1) / $a", nullptr},
    {TN_EXPR_ERF, "erf($a)", nullptr},
    {TN_EXPR_TANH, "tanh($a)", nullptr},
    {TN_EXPR_SIGMOID, "sigmoid($a)", nullptr},
    {TN_EXPR_SIN, "sin($a)", nullptr},
    {TN_EXPR_COS, "cos($a)", nullptr},
    {TN_EXPR_TAN, "tan($a)", nullptr},
    {TN_EXPR_ASIN, "asin($a)", nullptr},
    {TN_EXPR_ACOS, "acos($a)", nullptr},
    {TN_EXPR_ATAN, "atan($a)", nullptr},
    {TN_EXPR_SINH, "sinh($a)", nullptr},
    {TN_EXPR_COSH, "cosh($a)", nullptr},
    {TN_EXPR_ASINH, "asinh($a)", nullptr},
    {TN_EXPR_ACOSH, "acosh($a)", nullptr},
    {TN_EXPR_ATANH, "atanh($a)", nullptr},
    {TN_EXPR_FLOOR, "floor($a)", "$a"},
    {TN_EXPR_CEIL, "ceil($a)", "$a"},
    {TN_EXPR_ROUND, "rint($a)", "$a"},
    {TN_EXPR_TRUNC, "trunc($a)", "$a"},
    {TN_EXPR_NOT, "R($a == 0)", "R($a == 0)"},
    {TN_EXPR_ISNAN, "R($a != $a)", "R(0)"},
    {TN_EXPR_ISINF, "R(fabs($a) == infinity())", "R(0)"},
    {TN_EXPR_BITNOT, nullptr, "~$a"},
    {TN_EXPR_ADD, "$a + $b", "whole_add($a, $b)"},
    {TN_EXPR_SUB, "$a - $b", "whole_sub($a, $b)"},
    {TN_EXPR_MUL, "$a * $b", "whole_mul($a, $b)"},
    {TN_EXPR_DIV, "$a / $b", "whole_div($a, $b)"},
    {TN_EXPR_POW, "pow($a, $b)", "whole_pow($a, $b)"},
    {TN_EXPR_MIN, "low($a, $b)", "($a < $b ? $a : $b)"},
    {TN_EXPR_MAX, "high($a, $b)", "($a > $b ? $a : $b)"},
    {TN_EXPR_MOD, "floor_mod($a, $b)", "whole_mod($a, $b)"},
    {TN_EXPR_FMOD, "fmod($a, $b)", "whole_fmod($a, $b)"},
    {TN_EXPR_ATAN2, "atan2($a, $b)", nullptr},
    {TN_EXPR_EQ, "R($a == $b)", "R($a == $b)"},
    {TN_EXPR_NE, "R($a != $b)", "R($a != $b)"},
    {TN_EXPR_LT, "R($a < $b)", "R($a < $b)"},
    {TN_EXPR_LE, "R($a <= $b)", "R($a <= $b)"},
    {TN_EXPR_GT, "R($a > $b)", "R($a > $b)"},
    {TN_EXPR_GE, "R($a >= $b)", "R($a >= $b)"},
    {TN_EXPR_AND, "R($a != 0 && $b != 0)", "R($a != 0 && $b != 0)"},
    {TN_EXPR_OR, "R($a != 0 || $b != 0)", "R($a != 0 || $b != 0)"},
    {TN_EXPR_XOR, "R(($a != 0) != ($b != 0))", "R(($a != 0) != ($b != 0))"},
    {TN_EXPR_BITAND, nullptr, "($a & $b)"},
    {TN_EXPR_BITOR, nullptr, "($a | $b)"},
    {TN_EXPR_BITXOR, nullptr, "($a ^ $b)"},
    {TN_EXPR_SHL, nullptr, "shift_left($a, $b, $n)"},
    {TN_EXPR_SHR, nullptr, "shift_right($a, $b, $n)"},
    {TN_EXPR_SELECT, "($a != 0 ? $b : $c)", "($a != 0 ? $b : $c)"},
};

}  // namespace

std::span<const Intrinsic> intrinsics() {
  return kIntrinsics;
}

const Intrinsic* find_intrinsic(uint32_t op) {
  const Intrinsic* found = std::find_if(std::begin(kIntrinsics), std::end(kIntrinsics),
                                        [op](const Intrinsic& row) { return row.op == op; });
  return found == std::end(kIntrinsics) ? nullptr : found;
}

}  // namespace tenon::cuda
