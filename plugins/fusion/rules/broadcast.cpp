// SPDX-License-Identifier: Apache-2.0
// Before:  y = op(a, Expand(x)) where op broadcasts its operands: Add, Sub, Mul, Div, Where.
// After:   y = op(a, x).
// Needs:   the other operands alone give y its shape; all sizes are known, that of the Expand by a
//          constant.
#include <algorithm>

#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

bool is_static(const Type& type) {
  return type.ranked && std::ranges::all_of(type.dims, [](int64_t size) { return size >= 0; });
}

// What the operand repeats; none where it does not, or not by numbers that are known.
Value repeated(Value operand) {
  Node expand = made_by(operand, "Expand");
  if (!expand || !expand.input(1).is_constant()) return {};
  return is_static(expand.input(0).type()) && is_static(operand.type()) ? expand.input(0) : Value{};
}

Result<bool> rewrite(Rewriter& rewriter, Node node) {
  if (!is_static(node.output().type())) return false;
  std::vector<Value> inputs = node.inputs();
  for (Value& input : inputs) {
    Value before = input ? repeated(input) : Value{};
    if (!before) continue;
    input = before;
    TN_TRY(made, rewriter.op(node.type(), inputs));
    return rewriter.replace(node, made);
  }
  return false;
}

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  return walk(graph, settings, {"Add", "Sub", "Mul", "Div", "Where"}, rewrite);
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(broadcast,
            "fusion.broadcast",
            "no Expand in front of what broadcasts",
            tenon::fusion::run)
