// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite: QuantizeLinear with one scale moves in front of the Transpose and Reshape that it
// reads, to the step that makes the numbers. What is moved afterwards is a quarter of the bytes.

#include "graph/graph.hpp"

namespace tenon::onednn {

void quantize_early(Graph& graph);

}  // namespace tenon::onednn
