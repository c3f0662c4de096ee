// SPDX-License-Identifier: Apache-2.0
#include "sizes/lateness.hpp"

#include <algorithm>

#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

constexpr int64_t kMostNumbers = 64;  // in one value that is made from shapes
constexpr uint32_t kNoNumbers = TN_OP_RANDOM | TN_OP_STATEFUL | TN_OP_CONTROL;

bool holds_few(const Type& type) {
  if (type.kind != TN_KIND_TENSOR || has_open_sizes(type) || type.rank > 1) return false;
  return type.rank == 0 || type.dims[0] <= kMostNumbers;
}

}  // namespace

bool has_open_sizes(const Type& type) {
  return type.rank == TN_RANK_UNKNOWN ||
         std::ranges::any_of(type.dims, [](int64_t dim) { return dim < 0; });
}

Lateness::Lateness(const tn_graph& graph) : t_(*graph.tables) {
  const auto value = [&](tn_value_id id) -> const Value& { return *t_.values.find(id); };
  for (tn_node_id id : t_.order) {
    const tn_op* row = op_service()->of(&graph, id);
    const Node& node = *t_.nodes.find(id);
    const bool reads_open = std::ranges::any_of(
        node.inputs, [&](tn_value_id in) { return in && has_open_sizes(*value(in).type); });
    const bool reads_number =
        std::ranges::any_of(node.inputs, [&](tn_value_id in) { return in && is_number_value(in); });
    const bool makes_open = std::ranges::any_of(
        node.outputs, [&](tn_value_id out) { return has_open_sizes(*value(out).inferred); });
    if (row && makes_numbers(node, row->traits, reads_open, reads_number)) numbers_.insert(id);
    if (reads_open || (reads_number && (makes_open || is_number(id)))) late_.insert(id);
  }
}

bool Lateness::is_number_value(tn_value_id id) const {
  return numbers_.contains(t_.values.find(id)->producer);
}

bool Lateness::makes_numbers(const Node& node,
                             uint32_t traits,
                             bool reads_open,
                             bool reads_number) const {
  const bool has_few = std::ranges::all_of(
      node.outputs, [&](tn_value_id out) { return holds_few(*t_.values.find(out)->type); });
  if (traits & kNoNumbers || !has_few) return false;
  if (traits & TN_OP_READS_SHAPE) return reads_open;
  return reads_number && std::ranges::all_of(node.inputs, [&](tn_value_id in) {
           return !in || t_.values.find(in)->constant || is_number_value(in);
         });
}

}  // namespace tenon::host
