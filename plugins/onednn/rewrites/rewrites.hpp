// SPDX-License-Identifier: Apache-2.0
#pragma once
// All rewrites of a graph, in their order: those by which more nodes can be claimed, and those
// before it is lowered.

#include "graph/graph.hpp"

namespace tenon::onednn {

// Nodes that it adds have no source.
void rewrite_before_claiming(Graph& graph);
void rewrite(Graph& graph);

}  // namespace tenon::onednn
