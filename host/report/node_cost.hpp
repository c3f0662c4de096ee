// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node costs by its types, for reports and planners.

#include <optional>

#include "tenon/type.h"

namespace tenon::host {

struct NodeCost {
  double flops;  // multiply-adds count as two
  double bytes;  // read and written
};

// By the row's cost column; without one, an operation for each output element (none for views) and
// the bytes of inputs and outputs. Nothing when a size or the operator is not known.
std::optional<NodeCost> node_cost(const tn_graph* graph, tn_node_id node);

// Elements and bytes of a value; nothing when its size is not known.
std::optional<uint64_t> value_elements(const tn_graph* graph, tn_value_id value);
std::optional<uint64_t> value_bytes(const tn_graph* graph, tn_value_id value);

}  // namespace tenon::host
