// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inference finds less when sizes of inputs are open. Where it leaves the size of a late node's
// result open, and the graph had one size there for two values of the open ones, that size is taken
// for fixed. Each run checks it, since results of late partitions are checked.

#include "graph/graph.hpp"

namespace tenon::host {

// The graph with its inputs bound to sizes that differ in each of the open ones.
using SeenSizes = const tn_graph* [2];

// Declares the sizes of results that are taken for fixed. TN_UNIMPLEMENTED: it would take one for
// fixed that nothing checks.
Status declare_seen_sizes(tn_graph* graph, const SeenSizes& seen);

// Whether a graph that passes have made of one with declared sizes still checks all of them: what
// became constant may have been all that was made of a checked result.
bool checks_seen_sizes(const tn_graph& declared, const tn_graph& after_passes);

}  // namespace tenon::host
