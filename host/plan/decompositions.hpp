// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decompositions of composite nodes that backends do not claim whole. Graphs are immutable, so each
// decomposed graph is kept, and the trial's graph is the final one where the trial succeeds.

#include <deque>
#include <map>
#include <vector>

#include "backends/assignment.hpp"

namespace tenon::host {

// A graph in which some nodes of an earlier one are replaced by their pieces, and the backend of
// each node.
struct DecomposedGraph {
  std::shared_ptr<const Tables> from;
  std::vector<tn_node_id> nodes;  // to decompose
  Ref<tn_graph> graph;
  std::map<tn_node_id, std::vector<tn_node_id>> pieces;  // of nodes that have a decomposition
  Assignment assigned;
};

class Decompositions {
 public:
  Decompositions(const BackendUses& backends, const Lost& lost)
      : backends_(backends), lost_(lost) {}

  // A node is decomposed when backends that come earlier in the plan's order claim all of its
  // pieces. Pieces of an unclaimed node may also run on the host (control flow) or be decomposed
  // again (functions). Returns the graph with these nodes decomposed, or NULL when there is no such
  // node.
  Result<DecomposedGraph*> of_refused(const Assignment& all);

 private:
  Result<DecomposedGraph*> decomposed(const tn_graph& graph, std::vector<tn_node_id> nodes);

  const BackendUses& backends_;
  const Lost& lost_;
  std::deque<DecomposedGraph> made_;
};

}  // namespace tenon::host
