// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pointwise nodes with more inputs than one pass over memory takes: in parts, each of which is a
// node of its own.

#include "graph/graph.hpp"

namespace tenon::onednn {

void cut_many_inputs(Graph& graph);

}  // namespace tenon::onednn
