// SPDX-License-Identifier: Apache-2.0
#pragma once
// The closed list of intrinsics (abi/expr.md), one row each: spelling, arity, and what it means in
// double and in 64-bit integers. Parser, binder, printer and evaluator all read these rows.

#include <cstdint>
#include <span>
#include <string_view>

#include "languages/expr.hpp"

namespace tenon::host {

struct Intrinsic {
  using Real = double (*)(double, double, double);
  // Operands come wrapped and extended to 64 bits; the caller wraps the result.
  using Integer = uint64_t (*)(uint64_t, uint64_t, uint64_t, ExprType);

  uint32_t op;
  uint32_t arity;
  std::string_view name;    // as a function
  std::string_view symbol;  // as an operator; empty: none
  uint32_t precedence;      // of the operator, higher binds tighter
  uint32_t traits;
  Real real;        // null: not for floats
  Integer integer;  // null: not for integers
};
constexpr uint32_t kCommutes = 1;
constexpr uint32_t kFoldable = 2;  // may stand in fold(...)
constexpr uint32_t kBoolean = 4;   // the result is 0 or 1

constexpr uint32_t kPrecedenceChoice = 1;
constexpr uint32_t kPrecedenceUnary = 12;
constexpr uint32_t kPrecedencePrimary = 13;

std::span<const Intrinsic> intrinsics();
const Intrinsic* find_intrinsic(uint32_t op);
const Intrinsic* find_intrinsic(std::string_view name);

// Cuts to type.bits and extends to 64 by the domain's rule.
uint64_t wrap(uint64_t value, ExprType type);
// The same word for a whole number; what an integer type can have as a constant is exact in double.
uint64_t to_integer(double value);
bool is_constant_of(ExprType type, double value);

}  // namespace tenon::host
