// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rewrites of training graphs, after expand: the mask of a Relu's gradient reads the Relu's result
// and not its argument, so that what makes the argument can take the Relu along; a Relu behind a
// BatchNormalization in training, and the mask in front of its gradient, become part of them.

#include "graph/graph.hpp"

namespace tenon::onednn {

// The attribute that says so, of the normalization and of its gradient.
inline constexpr const char* kFusedRelu = "tenon.relu";

void join_activations(Graph& graph);

}  // namespace tenon::onednn
