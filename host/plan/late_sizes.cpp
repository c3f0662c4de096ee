// SPDX-License-Identifier: Apache-2.0
#include "plan/late_sizes.hpp"

#include <algorithm>
#include <unordered_set>

#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

// What each open size is taken for, and the work at which the last resort takes about as long as a
// compiler takes for a small plan.
constexpr int64_t kSupposedSize = 64;
constexpr double kLeastFlops = 1 << 23;

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

TypeRef supposed(const TypeRef& type) {
  if (type->kind != TN_KIND_TENSOR || type->rank == TN_RANK_UNKNOWN) return type;
  Type out = *type;
  for (int64_t& dim : out.dims)
    if (dim < 0) dim = kSupposedSize;
  out.symbols.clear();
  return seal(std::move(out));
}

// A view of the graph in which all that the nodes read and make has sizes.
Ref<tn_graph> with_supposed_sizes(const tn_graph& graph, const std::vector<tn_node_id>& nodes) {
  auto tables = std::make_shared<Tables>(*graph.tables);
  for (tn_node_id id : nodes) {
    const Node& node = *tables->nodes.find(id);
    for (const std::vector<tn_value_id>* list : {&node.inputs, &node.outputs})
      for (tn_value_id each : *list)
        if (Value* value = each ? tables->values.edit(each) : nullptr)
          value->type = supposed(value->type);
  }
  return Ref<tn_graph>::take(new_graph(graph.ctx, std::move(tables)));
}

// Whether it pays to compile them for each run's sizes.
bool are_heavy(const tn_graph& graph, const std::vector<tn_node_id>& nodes) {
  if (nodes.empty()) return false;
  const Ref<tn_graph> sized = with_supposed_sizes(graph, nodes);
  double sum = 0;
  for (tn_node_id id : nodes) {
    const tn_op* row = op_service()->of(sized.get(), id);
    double flops = 0, bytes = 0;
    if (row && row->cost && Status(row->cost(row->self, sized.get(), id, &flops, &bytes)).ok())
      sum += flops;
  }
  return sum >= kLeastFlops;
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
    if (!are_heavy(graph, late)) {
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
