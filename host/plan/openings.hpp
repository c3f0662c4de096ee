// SPDX-License-Identifier: Apache-2.0
#pragma once
// Composite nodes that backends refuse whole and take in pieces. What is taken apart in a trial and
// then in earnest is taken apart once: graphs do not change, so what came of one is kept by it.

#include <deque>
#include <map>
#include <vector>

#include "backends/assignment.hpp"

namespace tenon::host {

// A graph with some nodes of an earlier one in pieces, and who takes what of it.
struct OpenedGraph {
  std::shared_ptr<const Tables> from;
  std::vector<tn_node_id> nodes;  // that were to be taken apart
  Ref<tn_graph> graph;
  std::map<tn_node_id, std::vector<tn_node_id>> pieces;  // of those that could be
  Assignment assigned;
};

class Openings {
 public:
  Openings(const BackendUses& backends, const Lost& lost) : backends_(backends), lost_(lost) {}

  // What a backend refuses whole it may take in pieces, when all go to backends that are more
  // wanted; of what is unclaimed also to the host (control flow), or apart again (functions). The
  // graph with these in pieces; NULL: there is none.
  Result<OpenedGraph*> of_refused(const Assignment& all);

 private:
  Result<OpenedGraph*> take_apart(const tn_graph& graph, std::vector<tn_node_id> nodes);

  const BackendUses& backends_;
  const Lost& lost_;
  std::deque<OpenedGraph> made_;
};

}  // namespace tenon::host
