// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators whose kernels know f32 and no half precision (Takes::kWidened): float16 and bfloat16
// operands become f32, constants at once and others by a Cast in front, and results are rounded by
// a Cast behind. Sums are f32, and each result is rounded once, as the graph says.

#include "graph/graph.hpp"

namespace tenon::onednn {

// Before claiming; nodes that it adds have no source.
void widen_halves(Graph& graph);

}  // namespace tenon::onednn
