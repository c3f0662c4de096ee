// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kinks of an expression: where `abs`, `min` and `max` go from one of their pieces to the other.
// One slope of a sum of kinks is the sum of their means. A product of kinks, or a curve over one,
// has other slopes: of these, and of all higher ones, it is the mean of those on both sides.

#include <array>
#include <optional>
#include <vector>

#include "tenon/expr.h"

namespace tenon::autodiff {

using ExprNodes = std::vector<tn_expr_node>;

// Whether slopes of the program, of whatever order, are more than sums over its kinks.
bool bends_at_kinks(const tn_expr_program& program);

// The program as it is where the input is a bit larger, and a bit smaller, than at a kink: choices
// in place of kinks. None where no kink depends on the input in a way that is known (a sum, a
// multiple, a function that only grows); kinks that depend on it in another way stay.
std::optional<std::array<ExprNodes, 2>> beside_kinks(const tn_expr_program& program,
                                                     uint64_t input);

}  // namespace tenon::autodiff
