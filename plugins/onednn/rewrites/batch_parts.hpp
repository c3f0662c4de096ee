// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite: the first layers of a network run a few samples at a time where a whole batch of their
// activations would go through memory, so that each layer finds in cache what the one before it
// wrote. Weights are shared; behind the last large activation the batch is whole again.

#include "graph/graph.hpp"

namespace tenon::onednn {

void cut_batches(Graph& graph);

}  // namespace tenon::onednn
