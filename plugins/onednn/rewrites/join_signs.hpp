// SPDX-License-Identifier: Apache-2.0
#pragma once
// A rewrite: Where(x >= t, a, -a) with known t and a, read by nothing but products and convolutions
// whose weights are signs times a scale for each channel, becomes one node "tenon.Signs" (inputs x
// and t, attributes `scale` and `axis`), which packs 32 numbers a word
// (implementations/binary_product).

#include "graph/graph.hpp"

namespace tenon::onednn {

void join_signs(Graph& graph);

}  // namespace tenon::onednn
