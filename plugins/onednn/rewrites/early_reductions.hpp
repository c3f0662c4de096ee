// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite of the order of nodes: a reduction runs as soon as its operand is there. Gradients of
// biases stand at the end of a graph of gradients, and each would keep a whole gradient of
// activations until then.

#include "graph/graph.hpp"

namespace tenon::onednn {

void reduce_early(Graph& graph);

}  // namespace tenon::onednn
