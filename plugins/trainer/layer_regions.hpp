// SPDX-License-Identifier: Apache-2.0
#pragma once
// Residual layers: parts of a graph that can be left out, as a value of the same type goes around
// what they compute and is added to it.

#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::trainer {

struct LayerRegion {
  std::string name;         // "encoder.layer.3"
  std::vector<Node> nodes;  // in order; those of that name, what lies between, and the sum
  Value around, result;     // of one type; nothing else of the region is read outside
};

// One region for each part of a name that a pattern's * stands for ("blocks.*": blocks.0, ...), or
// for the scope or the name that a pattern without one is; nodes without a name, as those of
// functions, belong to the layer whose residual sum they lead to. Fails where a pattern means
// nothing, or a region cannot be left out: the error says why.
Result<std::vector<LayerRegion>> layer_regions(Graph graph,
                                               const std::vector<std::string>& patterns);

}  // namespace tenon::trainer
