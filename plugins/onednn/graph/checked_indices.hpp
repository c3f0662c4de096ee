// SPDX-License-Identifier: Apache-2.0
#pragma once
// Indices that a node before has looked at: the gradient of a Gather scatters by what the Gather
// has read, so that it cannot fail any more.

#include "graph.hpp"

namespace tenon::onednn {

// Of a ScatterND: whether each of its indices is one of an earlier Gather along an axis that is as
// long. That one has refused what is outside.
bool has_checked_indices(const Graph& graph, const Node& scatter);

}  // namespace tenon::onednn
