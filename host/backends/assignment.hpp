// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who takes which nodes of a graph: what its backends claim, asked one after another. Nodes that
// nobody claims whole may be taken in pieces; `../plan` finds those.

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/backend_use.hpp"
#include "graph/graph.hpp"

namespace tenon::host {

inline constexpr int kUnclaimed = -2;

// Nodes that backends claimed and then could not compile or run, with the reason, by the node's
// name and the backend: it gets them no more.
using Lost = std::map<std::pair<std::string, int>, std::string>;

struct Assignment {
  const tn_graph* graph = nullptr;
  std::vector<tn_node_id> nodes;  // in topological order
  std::unordered_map<tn_node_id, size_t> index;
  std::vector<int> backend;
  std::vector<std::vector<size_t>> groups;
  std::vector<std::map<int, std::string>> refusals;  // per node, by backend
  const Lost* lost = nullptr;
  int asking = 0;

  std::string name(tn_node_id node) const;
  bool is_lost(tn_node_id node) const;
};

// The graph and what was lost outlive it.
Result<Assignment> assign(const tn_graph& graph, const BackendUses& backends, const Lost& lost);

}  // namespace tenon::host
