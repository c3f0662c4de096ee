// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

#include <algorithm>

#include "tenon/role/op.h"

namespace tenon::pruner {
namespace {

const Rule* rule_of(Node node) {
  uint32_t family = Stated(node).family();
  if (family == TN_COUPLING_NONE) return nullptr;
  for (std::span<const Rule> table :
       {same_rules(), joining_rules(), moving_rules(), reducing_rules(), product_rules(),
        view_rules(), attention_rules(), recurrent_rules()}) {
    auto found =
        std::find_if(table.begin(), table.end(), [&](const Rule& r) { return r.family == family; });
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

bool is_ranked(Node node, Couplings& couplings) {
  auto ranked = [&](Value v) { return !v || couplings.is_ranked(v); };
  std::vector<Value> in = node.inputs(), out = node.outputs();
  return std::all_of(in.begin(), in.end(), ranked) && std::all_of(out.begin(), out.end(), ranked);
}

Refusal couple_known(Node node, Couplings& couplings) {
  const tn_op* row = node.row();
  if (!row) return "the operator is not known";
  if (!is_ranked(node, couplings)) return "a rank is not known";
  if (const Rule* rule = rule_of(node)) return rule->couple(node, couplings);
  if (row->traits & TN_OP_POINTWISE) return couple_pointwise(node, couplings);
  if (const tn_axes* axes = node.axes()) return couple_axes(node, *axes, couplings);
  if (row->traits & TN_OP_VIEW) return couple_view(node, couplings);
  return "the operator's row has neither axes nor a coupling";
}

}  // namespace

std::optional<size_t> axis_in(int64_t axis, size_t rank) {
  axis = positive_axis(axis, rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(axis);
}

int64_t size_after(Value value, size_t axis, const Kept& kept) {
  const std::vector<int64_t>* left = kept(value, axis);
  return left ? static_cast<int64_t>(left->size()) : value.type().dims[axis];
}

void couple(Node node, Couplings& couplings) {
  Refusal refused = couple_known(node, couplings);
  if (!refused) return;
  std::string why = cat(node_text(node), ": ", *refused);
  for (const std::vector<Value>& values : {node.inputs(), node.outputs()})
    for (Value v : values)
      if (v) couplings.protect_all(v, why);
}

Status rewrite(EditView edit, Node node, const Kept& kept) {
  if (const Rule* rule = rule_of(node))
    return rule->rewrite ? rule->rewrite(edit, node, kept) : Status();
  const tn_op* row = node.row();
  if (!row || (row->traits & TN_OP_POINTWISE)) return {};
  if (const tn_axes* axes = node.axes()) return rewrite_axes(edit, node, *axes, kept);
  return {};
}

Status mask(EditView edit, Node node, const Kept& kept) {
  const Rule* rule = rule_of(node);
  return rule && rule->mask ? rule->mask(edit, node, kept) : Status();
}

}  // namespace tenon::pruner
