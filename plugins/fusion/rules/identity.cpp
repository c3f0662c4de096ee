// SPDX-License-Identifier: Apache-2.0
// Before: Identity, Dropout at inference, Cast to the type that it has, Transpose that moves
//         nothing, Reshape, Expand and Flatten to the shape that it is; Transpose of a Transpose;
//         Reshape of a Reshape
// After:  the value itself; one Transpose; one Reshape
// Needs:  shapes that are known, where the rule compares them
#include "rule.hpp"

namespace tenon::fusion {
namespace {

bool same_type(Value a, Value b) {
  Type left = a.type(), right = b.type();
  return left.is_static() && right.is_static() && left.dtype == right.dtype &&
         left.dims == right.dims;
}

bool moves_nothing(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return !perm.empty();
}

bool does_nothing(Node node) {
  if (node.is("Identity")) return true;
  if (node.is("Dropout")) {
    double training = 0;
    bool off = !node.input(2) || (scalar_of(node.input(2), &training) && training == 0);
    Value mask = node.output(1);
    return off && (!mask || (!mask.consumer_count() && !mask.is_output()));
  }
  if (node.is("Cast")) return node.input(0).dtype() == node.output().dtype();
  if (node.is("Transpose")) return moves_nothing(node.attr_ints("perm"));
  if (node.is("Reshape") || node.is("Expand") || node.is("Flatten")) {
    return same_type(node.input(0), node.output());
  }
  return false;
}

// Transpose(Transpose(x, p), q) is Transpose(x, r) with r[i] = p[q[i]].
Result<bool> join_transposes(EditView edit, Node node, Node before) {
  std::vector<int64_t> outer = node.attr_ints("perm"), inner = before.attr_ints("perm");
  if (outer.empty() || outer.size() != inner.size()) return false;
  std::vector<int64_t> joined;
  for (int64_t axis : outer)
    joined.push_back(inner[static_cast<size_t>(axis)]);
  TN_TRY(made, edit.op("Transpose", {before.input(0)}, {{"perm", joined}}));
  TN_CHECK(edit.replace(node.output(), made));
  TN_CHECK(edit.erase(node));
  return true;
}

Result<bool> simplify(EditView edit, Node node) {
  if (does_nothing(node)) {
    TN_CHECK(edit.replace(node.output(), node.input(0)));
    TN_CHECK(edit.erase(node));
    return true;
  }
  Node before = node.input(0) ? node.input(0).producer() : Node();
  if (!before) return false;
  if (node.is("Transpose") && before.is("Transpose")) return join_transposes(edit, node, before);
  // 0 in the second shape would mean the first Reshape's dimension: only a known result is safe.
  if (node.is("Reshape") && (before.is("Reshape") || before.is("Flatten")) &&
      node.output().type().is_static() && node.attr_int("allowzero") == 0) {
    TN_TRY(shape, edit.ints(node.output().type().dims));
    TN_CHECK(edit.set_input(node, 0, before.input(0)));
    TN_CHECK(edit.set_input(node, 1, shape));
    return true;
  }
  return false;
}

}  // namespace
}  // namespace tenon::fusion

TENON_RULE(identity,
           "identity",
           "removes nodes that change nothing, joins moves that follow moves",
           tenon::fusion::simplify,
           nullptr)
