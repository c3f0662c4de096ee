// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which backend runs which nodes. The first backend in the plan's order that claims a node gets
// it; groups are taken whole. A node that the first one refuses is decomposed in the graph where
// all of its pieces go to backends that stand before the one that takes it whole. Control-flow
// nodes that no backend claims are run by the host. The graph is then cut into convex parts by
// depth: a node's depth is the largest number of changes of backend on a path to it, and nodes of
// one backend and one depth form a part. Every edge goes to the same part or to a larger depth, so
// parts in order of depth never wait for each other in a circle.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace tenon::host {

inline constexpr int kHostBackend = -1;  // control flow

struct Part {
  int backend = kHostBackend;
  size_t depth = 0;
  std::vector<tn_node_id> nodes;  // in topological order
};

// Backends do not get what is in `refused`.
Result<std::vector<Part>> partition(tn_graph* graph,
                                    const std::vector<std::unique_ptr<BackendUse>>& backends,
                                    std::vector<Fallback>* fallbacks,
                                    const std::vector<Lessons::Refused>& refused = {});

std::shared_ptr<Compiled> last_used(tn_plan* plan);  // or null
// Of the shapes last run, with those of the bodies that ran.
std::vector<Fallback> fallbacks_of(tn_plan* plan);

}  // namespace tenon::host
