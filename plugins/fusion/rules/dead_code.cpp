// SPDX-License-Identifier: Apache-2.0
// Before:  a node none of whose outputs is used, by a node or as an output of the graph.
// After:   nothing.
// Needs:   the operator is not stateful.
#include "rewriter.hpp"

namespace tenon::fusion {
namespace {

Result<int64_t> run(tn_graph* graph, const Settings& settings) {
  std::vector<Node> nodes = Graph{graph}.nodes();
  TN_TRY(edit, Edit::begin(graph));
  int64_t applied = 0;
  // Backwards, so that what only dead nodes used is dead by its turn.
  for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
    Node node = edit.node(at->id);
    if (!settings.covers(node) || !removable(node)) continue;
    TN_CHECK(edit.erase(node));
    ++applied;
  }
  if (applied > 0) TN_CHECK(edit.commit());
  return applied;
}

}  // namespace
}  // namespace tenon::fusion

FUSION_RULE(dead_code,
            "fusion.dead_code",
            "removes nodes whose results are not used",
            tenon::fusion::run)
