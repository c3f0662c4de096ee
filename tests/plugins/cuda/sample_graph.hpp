// SPDX-License-Identifier: Apache-2.0
#pragma once
// A row's random node as a graph, for tests that compare a backend with the reference.

#include "plugins/plugin_session.hpp"

namespace tenon::test {

// The sample's node with all its outputs handed out; null when the row refuses the seed.
inline OwnedGraph sample_graph(tn_ctx* ctx, const tn_op* op, uint64_t seed) {
  tn_graph* raw = nullptr;
  EXPECT_EQ(services.graph->create(ctx, &raw), nullptr);
  OwnedGraph graph = OwnedGraph::take(raw);
  tn_edit* edit = nullptr;
  EXPECT_EQ(services.edit->begin(raw, &edit), nullptr);
  tn_node_id node = 0;
  Status sampled(op->sample(op->self, edit, seed, &node));
  if (!sampled.ok()) {
    services.edit->rollback(edit);
    return {};
  }
  const tn_graph* view = services.edit->graph(edit);
  for (uint64_t i = 0; i < services.graph->io_count(view, node, TN_LIST_OUTPUTS); ++i) {
    tn_value_id value = services.graph->io_at(view, node, TN_LIST_OUTPUTS, i);
    std::string name = cat("y", i);
    if (value == 0) continue;
    EXPECT_EQ(services.edit->add_output(edit, str(name), value), nullptr);
  }
  Status committed(services.edit->commit(edit));
  EXPECT_TRUE(committed.ok()) << committed.message();
  return graph;
}

}  // namespace tenon::test
