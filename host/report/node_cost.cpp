// SPDX-License-Identifier: Apache-2.0
#include "report/node_cost.hpp"

#include "tenon/host/graph.h"
#include "tenon/host/op.h"
#include "tenon/role/op.h"

#include "capi/capi.hpp"
#include "values/dtype.hpp"

namespace tenon::host {
namespace {

std::optional<tn_type> tensor_type(const tn_graph* graph, tn_value_id value) {
  tn_type type{};
  type.struct_size = sizeof type;
  Status failed(service<tn_host_graph>("tenon.host.graph/1")->value_type(graph, value, &type));
  bool known = failed.ok() && type.kind == TN_KIND_TENSOR && type.dtype != TN_DTYPE_NONE &&
               type.rank != TN_RANK_UNKNOWN;
  return known ? std::optional(type) : std::nullopt;
}

// Sums over a node's inputs or outputs; nothing when one of them is not known.
template <class Measure>
std::optional<double> sum(const tn_graph* graph, tn_node_id node, uint32_t which, Measure measure) {
  const auto& graphs = *service<tn_host_graph>("tenon.host.graph/1");
  double total = 0;
  for (uint64_t i = 0; i < graphs.io_count(graph, node, which); ++i) {
    tn_value_id value = graphs.io_at(graph, node, which, i);
    if (value == 0) continue;
    std::optional<uint64_t> measured = measure(graph, value);
    if (!measured) return {};
    total += static_cast<double>(*measured);
  }
  return total;
}

}  // namespace

std::optional<uint64_t> value_elements(const tn_graph* graph, tn_value_id value) {
  std::optional<tn_type> type = tensor_type(graph, value);
  if (!type) return {};
  for (uint32_t i = 0; i < type->rank; ++i)
    if (type->dims[i] < 0) return {};
  Result<uint64_t> count = element_count({type->dims, type->rank});
  return count.ok() ? std::optional(*count) : std::nullopt;
}

std::optional<uint64_t> value_bytes(const tn_graph* graph, tn_value_id value) {
  std::optional<uint64_t> elements = value_elements(graph, value);
  if (!elements) return {};
  Result<uint64_t> bytes = bytes_of(tensor_type(graph, value)->dtype, *elements);
  return bytes.ok() ? std::optional(*bytes) : std::nullopt;
}

std::optional<NodeCost> node_cost(const tn_graph* graph, tn_node_id node) {
  const tn_op* op = service<tn_host_op>("tenon.host.op/1")->of(graph, node);
  if (!op) return {};
  NodeCost cost{};
  if (op->cost) {
    Status failed(op->cost(op->self, graph, node, &cost.flops, &cost.bytes));
    return failed.ok() ? std::optional(cost) : std::nullopt;
  }
  std::optional<double> elements = sum(graph, node, TN_LIST_OUTPUTS, value_elements);
  std::optional<double> in = sum(graph, node, TN_LIST_INPUTS, value_bytes);
  std::optional<double> out = sum(graph, node, TN_LIST_OUTPUTS, value_bytes);
  if (!elements || !in || !out) return {};
  bool moves_nothing = op->traits & (TN_OP_VIEW | TN_OP_READS_SHAPE);
  if (moves_nothing) return NodeCost{0, 0};
  return NodeCost{*elements, *in + *out};
}

}  // namespace tenon::host
