// SPDX-License-Identifier: Apache-2.0
// Before:  y = Transpose(Transpose(x)); y = Reshape(v) where v is a Reshape, Flatten, Squeeze or
//          Unsqueeze of x; any of these four after another that gives x its shape back; y =
//          Reshape(Transpose(Reshape(x))) that joins leading axes for the Transpose alone.
// After:   y = Transpose(x) with the product of both; y = Reshape(x); x; y = Transpose(x).
// Formula: perm[i] = first[second[i]].
// Needs:   the Reshape's target is constant, and says nothing about its input's dimensions (no 0).
#include <algorithm>

#include "rewriter.hpp"
#include "same_type.hpp"

namespace tenon::fusion {
namespace {

bool reshapes(Node node) {
  for (std::string_view type : {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}) {
    if (node && node.is(type)) return true;
  }
  return false;
}

Result<bool> join_transposes(Rewriter& rewriter, Node second, Node first) {
  std::vector<int64_t> outer = second.attr_ints("perm"), inner = first.attr_ints("perm");
  if (outer.empty() || outer.size() != inner.size()) return false;
  std::vector<int64_t> joined;
  for (int64_t axis : outer) {
    if (axis < 0 || axis >= static_cast<int64_t>(inner.size())) return false;
    joined.push_back(inner[static_cast<size_t>(axis)]);
  }
  TN_TRY(made, rewriter.op("Transpose", {first.input(0)}, {{"perm", joined}}));
  return rewriter.replace(second, made);
}

// x [a, b, m, n] as [a*b, m, n], transposed, and as [a, b, n, m] again: how exporters turn keys.
Result<bool> keep_leading_axes(Rewriter& rewriter, Node last, Node turn) {
  Node first = turn.input(0).producer();
  if (!first || !reshapes(first)) return false;
  Type x = first.input(0).type(), joined = turn.input(0).type(), y = last.output().type();
  std::vector<int64_t> perm = turn.attr_ints("perm");
  bool fits = x.ranked && joined.ranked && y.ranked && joined.rank() > 1 &&
              x.rank() >= joined.rank() && y.rank() == x.rank() && perm.size() == joined.rank() &&
              perm[0] == 0;
  if (!fits) return false;
  size_t leading = x.rank() - joined.rank() + 1;
  std::vector<int64_t> whole;
  for (size_t axis = 0; axis < x.rank(); ++axis) {
    size_t from = axis;
    if (axis >= leading) from = leading - 1 + static_cast<size_t>(perm[axis - leading + 1]);
    bool is_kept = axis < leading || same_size(x, axis, joined, axis - leading + 1);
    if (!is_kept || !same_size(x, from, y, axis)) return false;
    whole.push_back(static_cast<int64_t>(from));
  }
  TN_TRY(made, rewriter.op("Transpose", {first.input(0)}, {{"perm", whole}}));
  return rewriter.replace(last, made);
}

Result<bool> rewrite(Rewriter& rewriter, Node node) {
  Node before = node.input(0) ? node.input(0).producer() : Node{};
  if (!before) return false;
  if (node.is("Transpose"))
    return before.is("Transpose") ? join_transposes(rewriter, node, before) : false;
  if (before.is("Transpose")) return keep_leading_axes(rewriter, node, before);
  if (!reshapes(before)) return false;
  if (same_type(before.input(0).type(), node.output().type()))
    return rewriter.replace(node, before.input(0));
  if (!node.is("Reshape")) return false;
  std::optional<std::vector<int64_t>> target = constant_ints(node.input(1));
  if (!target || std::find(target->begin(), target->end(), 0) != target->end()) return false;
  TN_TRY(made, rewriter.op("Reshape", {before.input(0), node.input(1)}));
  return rewriter.replace(node, made);
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk(graph, settings, {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze"},
              rewrite);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(chains,
            "fusion.chains",
            "one Transpose for two, one Reshape for two",
            tenon::fusion::run)
