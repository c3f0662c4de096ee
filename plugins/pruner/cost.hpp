// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a graph costs: numbers to store and multiply-adds to do.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::pruner {

struct Cost {
  int64_t parameters = 0;      // elements of float constants
  int64_t nonzero = 0;         // of them
  std::optional<double> macs;  // of layers that compute; unknown sizes of inputs count as 1
};

// The graph with every size that it leaves open as 1; empty where that cannot be.
OwnedGraph with_known_sizes(const tn_graph* graph);

Cost cost_of(const tn_graph* graph);

// The multiply-adds of some nodes.
using Which = std::function<bool(tn_node_id)>;
std::optional<double> macs_of(const tn_graph* graph, const Which& which);

}  // namespace tenon::pruner
