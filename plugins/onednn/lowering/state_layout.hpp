// SPDX-License-Identifier: Apache-2.0
#pragma once
// How states lie in memory. Convolutions want their weights channels-last, as they want all else:
// then a gradient is the product that it is, and packing reads whole rows. What pointwise nodes tie
// to such a weight (its gradient, the slots of its optimizer, masks, averages) lies as it does, or
// the update would read across memory. All other states lie row-major; so do weights of products.
//
// The graph alone decides, so the plans of one model that train with it, evaluate it or run its
// last batch agree without having met. A plan that does not (it sees a slot without the weight) has
// the state laid out again when it runs: backend::StateStore.

#include <vector>

#include "graph/graph.hpp"

namespace tenon::onednn {

// For each value whether it lies channels-last for a state's sake.
std::vector<bool> kept_channels_last(const Graph& graph);
// Of a state, of its new value and of what is made for it.
Dims kept_strides(const Graph& graph, int value);

}  // namespace tenon::onednn
