// SPDX-License-Identifier: Apache-2.0
#pragma once
// What nodes cost by their types, for reports: the row's column `cost`; without one, an operation
// for each output element (none for views) and the bytes of inputs and outputs.

#include <optional>

#include "tenon/role/op.h"

#include "tenon/cxx/services.hpp"

namespace tenon::cxx {

struct NodeCost {
  double flops;  // multiply-adds count as two
  double bytes;  // read and written
};

class NodeCosts {
 public:
  explicit NodeCosts(const Services& services) : services_(services) {}

  // Nothing where a size or the operator is not known.
  std::optional<NodeCost> of(const tn_graph* graph, tn_node_id node) const {
    const tn_op* row = services_.op->of(graph, node);
    if (!row) return {};
    NodeCost cost{};
    if (row->cost) {
      tn_status* failed = row->cost(row->self, graph, node, &cost.flops, &cost.bytes);
      tenon_status_release(failed);
      return failed ? std::nullopt : std::optional(cost);
    }
    const auto elements = sum(graph, node, TN_LIST_OUTPUTS, &NodeCosts::elements);
    const auto in = sum(graph, node, TN_LIST_INPUTS, &NodeCosts::bytes);
    const auto out = sum(graph, node, TN_LIST_OUTPUTS, &NodeCosts::bytes);
    if (!elements || !in || !out) return {};
    if (row->traits & (TN_OP_VIEW | TN_OP_READS_SHAPE)) return NodeCost{0, 0};
    return NodeCost{*elements, *in + *out};
  }

  // Of a value; nothing where its size is not known, or larger than 64 bits hold.
  std::optional<uint64_t> elements(const tn_graph* graph, tn_value_id value) const {
    const std::optional<tn_type> type = tensor_type(graph, value);
    if (!type) return {};
    uint64_t count = 1;
    bool is_empty = false;
    for (uint32_t i = 0; i < type->rank; ++i) {
      if (type->dims[i] < 0) return {};
      is_empty = is_empty || type->dims[i] == 0;
      const auto factor = static_cast<uint64_t>(type->dims[i] == 0 ? 1 : type->dims[i]);
      if (__builtin_mul_overflow(count, factor, &count) || count > INT64_MAX) return {};
    }
    return is_empty ? 0 : count;
  }
  std::optional<uint64_t> bytes(const tn_graph* graph, tn_value_id value) const {
    const std::optional<uint64_t> count = elements(graph, value);
    uint64_t bits = 0;
    if (!count ||
        __builtin_mul_overflow(*count, TN_DTYPE_BITS(tensor_type(graph, value)->dtype), &bits))
      return {};
    return bits / 8 + (bits % 8 != 0);
  }

 private:
  std::optional<tn_type> tensor_type(const tn_graph* graph, tn_value_id value) const {
    tn_type type{};
    type.struct_size = sizeof type;
    tn_status* failed = services_.graph->value_type(graph, value, &type);
    tenon_status_release(failed);
    const bool is_known = !failed && type.kind == TN_KIND_TENSOR && type.dtype != TN_DTYPE_NONE &&
                          type.rank != TN_RANK_UNKNOWN;
    return is_known ? std::optional(type) : std::nullopt;
  }

  // Over a node's inputs or outputs; nothing when one of them is not known.
  std::optional<double> sum(const tn_graph* graph,
                            tn_node_id node,
                            uint32_t which,
                            std::optional<uint64_t> (NodeCosts::*measure)(const tn_graph*,
                                                                          tn_value_id)
                                const) const {
    double total = 0;
    for (uint64_t i = 0; i < services_.graph->io_count(graph, node, which); ++i) {
      const tn_value_id value = services_.graph->io_at(graph, node, which, i);
      if (value == 0) continue;
      const std::optional<uint64_t> measured = (this->*measure)(graph, value);
      if (!measured) return {};
      total += static_cast<double>(*measured);
    }
    return total;
  }

  const Services& services_;
};

}  // namespace tenon::cxx
