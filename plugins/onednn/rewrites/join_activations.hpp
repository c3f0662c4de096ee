// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite of training graphs, after expand: a Relu behind a BatchNormalization in training, and
// the mask in front of its gradient, which reads the Relu's result, become part of them.

#include "graph/graph.hpp"

namespace tenon::onednn {

// The attribute that says so, of the normalization and of its gradient: a number that no other pair
// has, since several normalizations may read one value, each with a mask of its own.
inline constexpr const char* kFusedRelu = "tenon.relu";

void join_activations(Graph& graph);

}  // namespace tenon::onednn
