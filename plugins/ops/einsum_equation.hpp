// SPDX-License-Identifier: Apache-2.0
#pragma once
// Einsum's equation as labels by axis; "..." gets labels of its own, aligned at the right.

#include <string_view>
#include <vector>

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

using Labels = std::vector<int>;
constexpr int kEllipsis = 256;  // this one and up: axes that "..." stands for, from the right

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};
// ranks: of the operands.
Result<Equation> parse_equation(std::string_view text, const std::vector<size_t>& ranks);

}  // namespace tenon::ops
