// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which backend runs which nodes. The first backend in the plan's order that claims a node gets
// it; groups are taken whole. A node that the first one refuses is decomposed in the graph where
// all of its pieces go to backends that stand before the one that takes it whole. Control-flow
// nodes that no backend claims are run by the host. The graph is then cut into convex partitions by
// depth: a node's depth is the largest number of changes of backend on a path to it, or, where that
// makes fewer partitions, the deepest that those behind it allow; nodes of one backend and one
// depth form a partition. Every edge goes to the same partition or to a larger
// depth, so partitions in order of depth never wait for each other in a circle.

#include <memory>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "sizes/late_nodes.hpp"

namespace tenon::host {

inline constexpr int kHostBackend = -1;  // control flow

struct Partition {
  int backend = kHostBackend;
  size_t depth = 0;
  std::vector<tn_node_id> nodes;     // in topological order
  std::vector<tn_node_id> repeated;  // nodes of others that a late partition has as well
  std::vector<tn_value_id> lent;     // read by late partitions for nodes that they repeat

  bool is_late() const { return backend == kLateBackend; }
};

Result<std::vector<Partition>> partition(tn_graph* graph,
                                         const BackendUses& backends,
                                         const Lost& lost,
                                         LateSizes late_sizes,
                                         std::vector<Fallback>* fallbacks);

// A partition as its backend compiled it.
struct CompiledPartition {
  Partition partition;
  Ref<tn_graph> graph;  // of its nodes alone; none of control flow
  Exe exe;              // none of control flow and of late partitions
};

// The partitions of a bound graph, compiled. Where a backend cannot compile what it claimed, the
// next one that claims the nodes gets them, and they are listed in its fallbacks with the reason.
// spares_constants: a backend may discard those that nothing but its partition and this graph has.
Result<std::vector<CompiledPartition>> compile_partitions(Compiled* bound, bool spares_constants);
// After a failure: the graph is of no more use.
bool has_discarded_constants(const tn_graph& graph);

// The specialization for these inputs, which is compiled now where there is none.
Result<CompiledRef> specialization_for(tn_plan* plan, Inputs in);
CompiledRef last_used(tn_plan* plan);  // or null
// Of the shapes last run, with those of the bodies that ran.
std::vector<Fallback> fallbacks_of(tn_plan* plan);

}  // namespace tenon::host
