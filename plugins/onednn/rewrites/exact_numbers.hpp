// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of which a Cast makes integers, such as indices that are computed in floating point, stay
// in f32 where a plan keeps others in bf16: up to what is no pointwise node and moves no elements.

#include "graph/graph.hpp"

namespace tenon::onednn {

void mark_exact_numbers(Graph& graph);

}  // namespace tenon::onednn
