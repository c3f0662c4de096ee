// SPDX-License-Identifier: Apache-2.0
#include "plan/late_sizes.hpp"

#include <algorithm>
#include <unordered_set>

namespace tenon::host {
namespace {

// Of constants that late nodes read, in all. The last resort takes about as long to multiply one
// row with so many as a compiler takes for a small plan.
constexpr uint64_t kLeastWeights = uint64_t{1} << 16;

bool has_open_sizes(const Value& value) {
  return value.type->rank == TN_RANK_UNKNOWN ||
         std::ranges::any_of(value.type->dims, [](int64_t dim) { return dim < 0; });
}

// In topological order: each node that reads a value of open sizes, and all behind it. None where a
// sequence or an optional is among what they read or make.
std::vector<tn_node_id> late_nodes(const Tables& tables, const std::vector<tn_node_id>& nodes) {
  std::vector<tn_node_id> out;
  std::unordered_set<tn_node_id> late;
  for (tn_node_id id : nodes) {
    const Node& node = *tables.nodes.find(id);
    auto is_late = [&](tn_value_id input) {
      const Value* value = input ? tables.values.find(input) : nullptr;
      return value && (has_open_sizes(*value) || late.contains(value->producer));
    };
    if (!std::ranges::any_of(node.inputs, is_late)) continue;
    late.insert(id);
    out.push_back(id);
    for (const std::vector<tn_value_id>* list : {&node.inputs, &node.outputs})
      for (tn_value_id each : *list)
        if (each && tables.values.find(each)->type->kind != TN_KIND_TENSOR) return {};
  }
  return out;
}

uint64_t weights_of(const Tables& tables, const std::vector<tn_node_id>& nodes) {
  uint64_t count = 0;
  for (tn_node_id id : nodes)
    for (tn_value_id input : tables.nodes.find(id)->inputs) {
      const Value* value = input ? tables.values.find(input) : nullptr;
      if (value && value->constant) count += value->constant->bytes / sizeof(float);
    }
  return count;
}

}  // namespace

void split_late_sizes(const tn_graph& graph,
                      const BackendUses& backends,
                      std::vector<Partition>* partitions,
                      std::vector<Fallback>* fallbacks) {
  const Tables& tables = *graph.tables;
  std::vector<Partition> out;
  for (Partition& one : *partitions) {
    const bool is_last = one.backend > 0 && backends[one.backend]->last_resort;
    std::vector<tn_node_id> late;
    if (is_last) late = late_nodes(tables, one.nodes);
    if (weights_of(tables, late) < kLeastWeights) {
      out.push_back(std::move(one));
      continue;
    }
    const std::unordered_set<tn_node_id> is_late(late.begin(), late.end());
    std::erase_if(one.nodes, [&](tn_node_id id) { return is_late.contains(id); });
    std::unordered_set<std::string_view> names;
    for (tn_node_id id : late)
      names.insert(*tables.nodes.find(id)->name);
    std::erase_if(*fallbacks, [&](const Fallback& f) { return names.contains(f.node); });
    Partition behind{one.backend, one.depth, std::move(late), true};
    if (!one.nodes.empty()) out.push_back(std::move(one));
    out.push_back(std::move(behind));
  }
  *partitions = std::move(out);
}

}  // namespace tenon::host
