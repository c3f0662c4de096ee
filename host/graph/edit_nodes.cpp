// SPDX-License-Identifier: Apache-2.0
// Adding, changing and erasing nodes. Use lists of values are kept exact at every step.
#include <algorithm>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"

using namespace tenon::host;

void tn_edit::add_use(tn_value_id id, tn_node_id node, uint32_t input) {
  if (id != 0) tables_->values.edit(id)->uses.push_back({node, input});
}

void tn_edit::remove_use(tn_value_id id, tn_node_id node, uint32_t input) {
  if (id == 0) return;
  auto& uses = tables_->values.edit(id)->uses;
  auto at = std::find_if(uses.begin(), uses.end(),
                         [&](const Use& use) { return use.node == node && use.input == input; });
  if (at != uses.end()) uses.erase(at);
}

Status tn_edit::check_inputs(const NodeSpec& spec) const {
  if (spec.type.empty()) return invalid("add_node: expected an operator type, got an empty one");
  for (size_t i = 0; i < spec.inputs.size(); ++i)
    if (spec.inputs[i] != 0 && !tables_->values.find(spec.inputs[i]))
      return Status(TN_INVALID_ARGUMENT,
                    cat("add_node ", op_text(spec.domain, spec.type), ": input ", i), "host",
                    stale_value(spec.inputs[i]));
  return {};
}

// The node since share() that computes what this one would; 0: none.
tn_node_id tn_edit::added_like(const NodeSpec& spec) const {
  const Value* first = spec.inputs.empty() ? nullptr : tables_->values.find(spec.inputs[0]);
  if (!first) return 0;
  const OpRow* row = ctx()->session->ops->find(*tables_, spec.domain, spec.type);
  if (!row || row->op.traits & (TN_OP_RANDOM | TN_OP_STATEFUL | TN_OP_CONTROL)) return 0;
  for (const Use& use : first->uses) {
    const Node& node = *tables_->nodes.find(use.node);
    if (use.input == 0 && shared_.contains(use.node) && node.type == spec.type &&
        node.domain == spec.domain && node.inputs == spec.inputs &&
        node.outputs.size() == spec.outputs.size() && std::ranges::equal(node.attrs, spec.attrs))
      return use.node;
  }
  return 0;
}

Result<tn_node_id> tn_edit::add_node(const NodeSpec& spec) {
  TN_CHECK(check_inputs(spec));
  if (tn_node_id same = shares_ ? added_like(spec) : 0) return asked_for_.emplace_back(same);
  Node node;
  node.domain = spec.domain;
  node.type = spec.type;
  std::string name = free_name(&Tables::node_names, spec.name.empty() ? spec.type : spec.name);
  const Text text = node.name = make_text(name);
  node.scope = spec.scope.empty() ? scope_ : make_text(spec.scope);
  node.inputs = spec.inputs;
  node.attrs = spec.attrs;
  tn_node_id id = tables_->nodes.add(std::move(node), generation());
  claim(&Tables::node_names, text, id);
  for (size_t i = 0; i < spec.inputs.size(); ++i)
    add_use(spec.inputs[i], id, static_cast<uint32_t>(i));
  std::vector<tn_value_id> outputs;
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    std::string base = spec.outputs[i];
    if (base.empty()) base = i == 0 ? name : cat(name, "_out", i);
    if (taken(base)) base = free_name(&Tables::value_names, base);
    Value value;
    value.producer = id;
    value.out_index = static_cast<uint32_t>(i);
    outputs.push_back(new_value(base, std::move(value)));
  }
  tables_->nodes.edit(id)->outputs = std::move(outputs);
  tables_->order.push_back(id);
  if (Status refused = infer(id); !refused.ok()) {
    undo_nodes(tables_->order.size() - 1);
    return refused;
  }
  if (shares_) shared_.insert(asked_for_.emplace_back(id));
  return id;
}

Status tn_edit::erase_node(tn_node_id id) {
  const Node* node = tables_->nodes.find(id);
  if (!node) return stale_node(id);
  for (size_t i = 0; i < node->inputs.size(); ++i)
    remove_use(node->inputs[i], id, static_cast<uint32_t>(i));
  for (tn_value_id output : node->outputs) {
    const Value& value = *tables_->values.find(output);
    if (value.uses.empty() && value.as_output == 0) {
      drop_value(output);
    } else {  // its uses may still be replaced: commit looks again
      tables_->values.edit(output)->producer = 0;
      orphans_.push_back(output);
    }
  }
  unclaim(&Tables::node_names, *node->name, id);
  auto& order = tables_->order;
  order.erase(std::find(order.begin(), order.end(), id));
  retire(tables_->nodes.remove(id));
  return {};
}

void tn_edit::undo_nodes(size_t n_kept) {
  while (tables_->order.size() > n_kept) {
    Status erased = erase_node(tables_->order.back());
    if (!erased.ok()) return;  // cannot be: the list holds live nodes only
  }
}

Status tn_edit::set_input(tn_node_id id, uint64_t i, tn_value_id value) {
  const Node* node = tables_->nodes.find(id);
  if (!node) return stale_node(id);
  if (i >= node->inputs.size() + 1 || i >= UINT32_MAX)
    return {TN_OUT_OF_RANGE, cat("set_input ", i, ": ", node_text(*node), " has ",
                                 node->inputs.size(), " (one may be appended)")};
  if (value != 0 && !tables_->values.find(value)) return stale_value(value);
  auto index = static_cast<uint32_t>(i);
  if (i < node->inputs.size()) {
    if (node->inputs[i] == value) return {};
    remove_use(node->inputs[i], id, index);
  }
  Node* writable = tables_->nodes.edit(id);
  if (i == writable->inputs.size()) writable->inputs.push_back(0);
  writable->inputs[i] = value;
  while (!writable->inputs.empty() && writable->inputs.back() == 0)
    writable->inputs.pop_back();
  add_use(value, id, index);
  touch(id);
  return {};
}

Status tn_edit::set_attr(tn_node_id id, std::string_view name, const tn_any& value) {
  const Node* node = tables_->nodes.find(id);
  if (!node) return stale_node(id);
  if (name.empty()) return invalid(cat("set_attr: ", node_text(*node), ": expected a name"));
  AnyRef owned;
  if (value.tag != TN_ANY_NONE) {
    TN_TRY(made, own_attribute(*this, node->domain, node->type, name, value));
    owned = made;
  }
  if (AnyRef before = assign(tables_->nodes.edit(id)->attrs, name, std::move(owned)))
    retire(before);
  touch(id);
  return {};
}

Status tn_edit::set_scope(tn_node_id id, std::string_view scope) {
  if (id == 0) {
    scope_ = make_text(scope);
    return {};
  }
  const Node* node = tables_->nodes.find(id);
  if (!node) return stale_node(id);
  retire(node->scope);
  tables_->nodes.edit(id)->scope = make_text(scope);
  return {};
}

Status tn_edit::replace_uses(tn_value_id from, tn_value_id to) {
  const Value* old = tables_->values.find(from);
  if (!old) return stale_value(from);
  const Value* target = tables_->values.find(to);
  if (!target) return stale_value(to);
  if (from == to) return {};
  bool same_type = *old->type == *target->type;
  Value* source = tables_->values.edit(from);
  Value* dest = tables_->values.edit(to);
  for (const Use& use : source->uses) {
    tables_->nodes.edit(use.node)->inputs[use.input] = to;
    if (!same_type || dest->constant || source->constant) touch(use.node);
  }
  dest->uses.insert(dest->uses.end(), source->uses.begin(), source->uses.end());
  source->uses.clear();
  for (Output& output : tables_->outputs)
    if (output.value == from) output.value = to;
  dest->as_output += source->as_output;
  source->as_output = 0;
  for (auto& [input, output] : tables_->states) {
    if (output == from) output = to;
    if (input == from && dest->is_input) input = to;
  }
  return {};
}
