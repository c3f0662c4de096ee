// SPDX-License-Identifier: Apache-2.0
#include "sizes/seen_sizes.hpp"

#include <algorithm>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"
#include "sizes/lateness.hpp"

namespace tenon::host {
namespace {

// The type that both have for a value of this name; NULL: none, or one of open sizes.
TypeRef seen_type(const SeenSizes& seen, std::string_view name) {
  TypeRef types[2];
  for (size_t i : {0, 1}) {
    const Tables& tables = *seen[i]->tables;
    const Value* value = tables.values.find(tables.find_value(name));
    if (!value) return nullptr;
    types[i] = value->type;
  }
  return *types[0] == *types[1] && !has_open_sizes(*types[0]) ? types[0] : nullptr;
}

// Whose shape becomes numbers: no run would check these.
bool is_measured(const tn_graph& graph, const Value& value) {
  return std::ranges::any_of(value.uses, [&](const Use& use) {
    const tn_op* row = op_service()->of(&graph, use.node);
    return !row || row->traits & TN_OP_READS_SHAPE;
  });
}

bool is_declared(const Value& value) {
  return has_open_sizes(*value.inferred) && !has_open_sizes(*value.type);
}

// A result whose size no late partition checks, though only earlier runs are known to have it.
bool rests_on_luck(const Tables& tables, const Lateness& lateness, tn_node_id id) {
  return !lateness.is_late(id) &&
         std::ranges::any_of(tables.nodes.find(id)->outputs, [&](tn_value_id output) {
           return is_declared(*tables.values.find(output));
         });
}

// A result of a late partition that others read, so that a run looks at its size.
bool is_checked(const Value& value, const Lateness& lateness) {
  return value.as_output > 0 || std::ranges::any_of(value.uses, [&](const Use& use) {
           return !lateness.is_late(use.node);
         });
}

}  // namespace

Status declare_seen_sizes(tn_graph* graph, const SeenSizes& seen) {
  const Lateness before(*graph);
  TN_TRY(edit, begin_edit(graph));
  const std::vector<tn_node_id> order = edit->tables().order;
  for (tn_node_id id : order) {
    const tn_op* row = op_service()->of(graph, id);
    if (!before.is_late(id) || !row || row->traits & TN_OP_DATA_SHAPE) continue;
    for (tn_value_id output : edit->tables().nodes.find(id)->outputs) {
      const Value& value = *edit->tables().values.find(output);
      if (!has_open_sizes(*value.type) || is_measured(*graph, value)) continue;
      if (TypeRef type = seen_type(seen, *value.name)) TN_CHECK(edit->set_type(output, type));
    }
  }
  TN_CHECK(edit->commit());
  const Lateness after(*graph);
  for (tn_node_id id : graph->tables->order)
    if (rests_on_luck(*graph->tables, after, id))
      return {TN_UNIMPLEMENTED, "a size that depends on data was the same so far"};
  return {};
}

bool checks_seen_sizes(const tn_graph& declared, const tn_graph& after_passes) {
  const Tables &before = *declared.tables, &after = *after_passes.tables;
  const Lateness late_before(declared), late_after(after_passes);
  for (tn_node_id id : before.order)
    for (tn_value_id output : before.nodes.find(id)->outputs) {
      const Value& value = *before.values.find(output);
      if (!is_declared(value) || !is_checked(value, late_before)) continue;
      const Value* same = after.values.find(after.find_value(*value.name));
      if (!same || !is_declared(*same) || !is_checked(*same, late_after)) return false;
    }
  return std::ranges::none_of(after.order,
                              [&](tn_node_id id) { return rests_on_luck(after, late_after, id); });
}

}  // namespace tenon::host
