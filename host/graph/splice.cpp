// SPDX-License-Identifier: Apache-2.0
// Copying nodes between graphs: splice, extract, and decompose on top of them.
#include <algorithm>
#include <span>
#include <unordered_set>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"
#include "services/rooms.hpp"

using namespace tenon::host;

namespace {

// Of a function's body, or of its gradient, which may be absent.
bool is_same(const tn_graph* a, const tn_graph* b) {
  if (!a || !b) return a == b;
  if (a->tables == b->tables) return true;
  return rooms().print && rooms().print(*a, false) == rooms().print(*b, false);
}

}  // namespace

tn_edit::Result<tn_value_id> tn_edit::copy_value(const tn_graph& from,
                                                 tn_value_id theirs,
                                                 ValueMap& map) {
  if (theirs == 0) return tn_value_id{0};
  if (auto at = map.find(theirs); at != map.end()) return at->second;
  const Value& value = *from.tables->values.find(theirs);
  if (!value.constant) return invalid(cat("splice: value ", *value.name, " is not given"));
  TN_TRY(id, add_constant(*value.name, value.constant.get()));
  tables_->values.edit(id)->notes = value.notes;
  map[theirs] = id;
  return id;
}

Status tn_edit::copy_node(const tn_graph& from,
                          const Node& node,
                          std::string_view scope,
                          ValueMap& map) {
  NodeSpec spec{node.domain, node.type, *node.name, {}, {}, {}, node.attrs};
  std::string joined(scope);
  if (!scope.empty() && !node.scope->empty()) joined += '/';
  joined += *node.scope;
  spec.scope = joined;
  for (tn_value_id input : node.inputs) {
    TN_TRY(ours, copy_value(from, input, map));
    spec.inputs.push_back(ours);
  }
  for (tn_value_id output : node.outputs)
    spec.outputs.push_back(*from.tables->values.find(output)->name);
  TN_TRY(id, add_node(spec));
  tables_->nodes.edit(id)->notes = node.notes;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& theirs = *from.tables->values.find(node.outputs[i]);
    tn_value_id ours = tables_->nodes.find(id)->outputs[i];
    map[node.outputs[i]] = ours;
    // What inference noted just now is about the types here, theirs about those there.
    NamedAnys& notes = tables_->values.edit(ours)->notes;
    for (const NamedAny& note : theirs.notes)
      if (!find(notes, note.name)) assign(notes, note.name, note.value);
    bool fits = theirs.declared && agree(*theirs.declared, *tables_->values.find(ours)->inferred);
    if (fits) TN_CHECK(set_type(ours, theirs.declared));
  }
  return {};
}

Status tn_edit::copy_imports(const tn_graph& from) {
  for (const NamedAny& theirs : from.tables->notes) {
    if (!theirs.name.starts_with(kVersionNote)) continue;
    tn_any version = theirs.value->get();
    const NamedAny* ours = find(tables_->notes, theirs.name);
    if (!ours) {
      TN_CHECK(set_note(0, theirs.name, version));
    } else if (any_text(ours->value->get()) != any_text(version)) {
      return invalid(cat("splice: expected ", theirs.name, " = ", any_text(ours->value->get()),
                         " as this graph has it, got ", any_text(version)));
    }
  }
  for (const Function& theirs : from.tables->functions) {
    const Function* ours = tables_->function(theirs.domain, theirs.type);
    if (!ours) {
      tables_->functions.push_back(theirs);
    } else if (!is_same(ours->body.get(), theirs.body.get()) ||
               !is_same(ours->vjp.get(), theirs.vjp.get())) {
      return {TN_ALREADY_EXISTS, cat("splice: both graphs have a function ",
                                     op_text(theirs.domain, theirs.type), ", and they differ")};
    }
  }
  return {};
}

Status tn_edit::splice(const tn_graph& from,
                       std::string_view scope,
                       tn_value_id* pairs,
                       uint64_t n_pairs) {
  // Theirs stay as they are even when it is this very graph that is copied into itself.
  auto source = Ref<tn_graph>::take(clone(from));
  const Tables& theirs = *source->tables;
  ValueMap map;
  for (uint64_t i = 0; i < n_pairs; ++i) {
    tn_value_id key = pairs[2 * i];
    tn_value_id ours = pairs[2 * i + 1];
    if (!theirs.values.find(key)) return stale_value(key);
    if (ours == 0) continue;
    if (!tables_->values.find(ours)) return stale_value(ours);
    map[key] = ours;
  }
  for (tn_value_id input : theirs.inputs)
    if (!map.count(input))
      return invalid(cat("splice: input ", *theirs.values.find(input)->name, " is not given"));
  size_t n_before = tables_->order.size();
  Status failed = copy_imports(*source.get());
  for (size_t i = 0; failed.ok() && i < theirs.order.size(); ++i) {
    const Node& node = *theirs.nodes.find(theirs.order[i]);
    auto given = [&](tn_value_id id) { return map.count(id) > 0; };
    bool replaced = std::all_of(node.outputs.begin(), node.outputs.end(), given);
    if (!replaced || node.outputs.empty()) failed = copy_node(*source.get(), node, scope, map);
  }
  for (uint64_t i = 0; failed.ok() && i < n_pairs; ++i) {
    if (pairs[2 * i + 1] != 0) continue;
    TN_TRY(ours, copy_value(*source.get(), pairs[2 * i], map));
    pairs[2 * i + 1] = ours;
  }
  if (!failed.ok()) undo_nodes(n_before);
  return failed;
}

// The values that stand for the node's outputs.
tn_edit::Result<std::vector<tn_value_id>> tn_edit::expand(tn_node_id id) {
  const Node node = *tables_->nodes.find(id);
  std::vector<tn_value_id> made(node.outputs.size());
  if (const Function* called = tables_->function(node.domain, node.type)) {
    auto body = called->body;
    const Tables& theirs = *body->tables;
    std::vector<tn_value_id> pairs;
    for (size_t i = 0; i < theirs.inputs.size(); ++i) {
      tn_value_id actual = i < node.inputs.size() ? node.inputs[i] : 0;
      if (actual == 0)
        return invalid(cat("decompose: ", node_text(node), ": input ", i, " is absent"));
      pairs.insert(pairs.end(), {theirs.inputs[i], actual});
    }
    size_t n_inputs = pairs.size();
    for (size_t i = 0; i < made.size(); ++i)
      pairs.insert(pairs.end(), {theirs.outputs[i].value, 0});
    // A body may hand an input straight on.
    TN_CHECK(splice(*body, *node.scope, pairs.data(), pairs.size() / 2));
    for (size_t i = 0; i < made.size(); ++i)
      made[i] = pairs[n_inputs + 2 * i + 1];
    return made;
  }
  const OpRow* row = ctx()->session->ops->find(*tables_, node.domain, node.type);
  if (!row || !row->op.decompose)
    return Status(TN_UNIMPLEMENTED,
                  cat("decompose: ", node_text(node),
                      row ? ": its row has no decompose" : ": no loaded plugin brings it"));
  Text outer = scope_;
  scope_ = node.scope;
  Status failed(row->op.decompose(row->op.self, this, id, made.data()));
  scope_ = outer;
  if (failed.ok()) return made;
  return std::move(failed).in(cat("decompose: ", node_text(node)));
}

Status tn_edit::decompose(tn_node_id id) {
  if (!tables_->nodes.find(id)) return stale_node(id);
  size_t n_before = tables_->order.size();
  Result<std::vector<tn_value_id>> made = expand(id);
  Status failed = made.ok() ? Status() : made.status();
  const std::vector<tn_value_id> outputs = tables_->nodes.find(id)->outputs;
  for (size_t i = 0; failed.ok() && i < outputs.size(); ++i) {
    const Value* ours = tables_->values.find((*made)[i]);
    const Value& old = *tables_->values.find(outputs[i]);
    const bool is_read = !old.uses.empty() || old.as_output > 0;
    if (!ours)
      failed = stale_value((*made)[i]);
    else if (is_read && !agree(*old.type, *ours->type))
      failed =
          invalid(cat("decompose: ", node_text(*tables_->nodes.find(id)), ": output ", i, " is ",
                      type_text(*old.type), ", its pieces give ", type_text(*ours->type)));
  }
  if (!failed.ok()) {
    undo_nodes(n_before);
    return failed;
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    TN_CHECK(replace_uses(outputs[i], (*made)[i]));
  std::vector<std::string> names;
  for (tn_value_id output : outputs)
    names.push_back(*tables_->values.find(output)->name);
  TN_CHECK(erase_node(id));
  // What the new nodes made takes the old names over, so that taps and notes by name still serve.
  for (size_t i = 0; i < outputs.size(); ++i) {
    tn_node_id producer = tables_->values.find((*made)[i])->producer;
    auto first_new = tables_->order.begin() + static_cast<int64_t>(n_before - 1);
    bool is_new = std::find(first_new, tables_->order.end(), producer) != tables_->order.end();
    if (is_new && !taken(names[i])) TN_CHECK(set_value_name((*made)[i], names[i]));
  }
  return {};
}

namespace tenon::host {

namespace {

// A part of a graph on its way into a graph of its own.
struct Extraction {
  const Tables& t;
  std::unordered_set<tn_node_id> chosen;
  tn_edit& edit;
  tn_edit::ValueMap map = {};

  bool has(tn_node_id id) const { return chosen.count(id) > 0; }
  bool is_used_outside(const Value& value) const {
    return std::any_of(value.uses.begin(), value.uses.end(),
                       [&](const Use& use) { return !has(use.node); });
  }

  Status add_inputs(const Node& node, bool with_notes) {
    for (tn_value_id input : node.inputs) {
      const Value* value = t.values.find(input);
      bool enters = value && !value->constant && !has(value->producer);
      if (!enters || map.count(input)) continue;
      TN_TRY(ours, edit.add_input(*value->name, value->type));
      map[input] = ours;
      for (const NamedAny& note : value->notes)
        if (with_notes) TN_CHECK(edit.set_note(ours, note.name, note.value->get()));
    }
    return {};
  }
  Status add_outputs(const Node& node) {
    for (tn_value_id output : node.outputs) {
      const Value& value = *t.values.find(output);
      if (value.as_output > 0 || is_used_outside(value)) TN_CHECK(edit.add_output("", map[output]));
    }
    return {};
  }
  // A state that only these nodes read and write stays one; no other state becomes what it was.
  Status add_states() {
    for (auto [input, output] : t.states) {
      const Value& before = *t.values.find(input);
      const Value& after = *t.values.find(output);
      bool inside = map.count(input) && map.count(output) && has(after.producer) &&
                    before.as_output == 0 && !is_used_outside(before) && !is_used_outside(after);
      if (inside) TN_CHECK(edit.pair_state(map[input], map[output]));
    }
    return {};
  }
  // What `work` does with each node, in order.
  template <class Work>
  Status each(Work work) {
    for (tn_node_id id : t.order)
      if (has(id)) TN_CHECK(work(*t.nodes.find(id)));
    return {};
  }
};

}  // namespace

Result<tn_graph*> extract(const tn_graph& graph,
                          const tn_node_id* nodes,
                          uint64_t n,
                          bool with_notes) {
  auto out = Ref<tn_graph>::take(new_graph(graph.ctx, std::make_shared<const Tables>()));
  TN_TRY(edit, begin_edit(out.get()));
  Extraction part{*graph.tables, {nodes, nodes + n}, *edit};
  for (tn_node_id id : std::span(nodes, n))
    if (!graph.tables->nodes.find(id)) return stale_node(id);
  TN_CHECK(part.each([&](const Node& node) { return part.add_inputs(node, with_notes); }));
  TN_CHECK(edit->copy_imports(graph));
  TN_CHECK(part.each([&](const Node& node) { return edit->copy_node(graph, node, "", part.map); }));
  TN_CHECK(part.each([&](const Node& node) { return part.add_outputs(node); }));
  TN_CHECK(part.add_states());
  TN_CHECK(edit->commit());
  edit.reset();
  return out.release();
}

}  // namespace tenon::host
