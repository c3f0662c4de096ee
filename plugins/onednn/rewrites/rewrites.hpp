// SPDX-License-Identifier: Apache-2.0
#pragma once
// All rewrites of a graph before it is lowered, in their order.

#include "graph/graph.hpp"

namespace tenon::onednn {

void rewrite(Graph& graph);

}  // namespace tenon::onednn
