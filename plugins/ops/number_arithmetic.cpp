// SPDX-License-Identifier: Apache-2.0
#include "number_arithmetic.hpp"

#include <algorithm>
#include <limits>

namespace tenon::ops {
namespace {

using Rule = Dim (*)(const Dim& a, const Dim& b);

// Numbers that an i32 does not hold wrap around when they are computed.
Dim in_range(Dim dim, uint32_t dtype) {
  using Narrow = std::numeric_limits<int32_t>;
  const bool fits = !dim.known() || dtype == TN_I64 ||
                    (*dim.value >= Narrow::min() && *dim.value <= Narrow::max());
  return fits ? dim : Dim();
}

std::optional<Dims> joined(Node node, Rule rule) {
  const uint32_t dtype = node.input(0).dtype();
  if (dtype != TN_I64 && dtype != TN_I32) return {};
  std::optional<Dims> a = contents(node.input(0)), b = contents(node.input(1));
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return {};
  Dims out(a->size() == 1 ? b->size() : a->size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = in_range(rule((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]), dtype);
  return out;
}

Status note(EditView edit, Node node, Rule rule) {
  return set_contents(edit, node.output(), joined(node, rule));
}

// Toward zero, as integers are divided. A symbol is a size, so no text without a minus is below
// zero.
Dim divided(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    const bool is_defined = *b.value != 0 && !(*a.value == INT64_MIN && *b.value == -1);
    return is_defined ? Dim(*a.value / *b.value) : Dim();
  }
  const bool is_size = a.known() ? *a.value >= 0 : a.symbol.find('-') == std::string::npos;
  return is_size && b.known() && *b.value > 0 ? floor_divide(a, b) : Dim();
}

}  // namespace

Status add_numbers(EditView edit, Node node) {
  return note(edit, node, [](const Dim& a, const Dim& b) { return a + b; });
}
Status subtract_numbers(EditView edit, Node node) {
  return note(edit, node, [](const Dim& a, const Dim& b) { return a - b; });
}
Status multiply_numbers(EditView edit, Node node) {
  return note(edit, node, [](const Dim& a, const Dim& b) { return a * b; });
}
Status divide_numbers(EditView edit, Node node) {
  return note(edit, node, divided);
}

}  // namespace tenon::ops
