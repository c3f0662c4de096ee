// SPDX-License-Identifier: Apache-2.0
#pragma once
// The smaller layers that take a layer's place: what they cost, and how they are added to a graph.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/sdk/edit.hpp"

#include "layer.hpp"

namespace tenon::decomposer {

struct Step {
  std::string_view suffix;      // of its name: "in", "core"; the last step takes the layer's name
  std::vector<int64_t> dims;    // of its weight: [n_out, n_in / group, window...]
  std::vector<double> numbers;  // in this order
  int64_t group = 1;
  // Which axes of the layer's window it slides along; it takes their strides, pads and dilations.
  std::vector<bool> axes;
};

struct Cost {
  double parameters = 0, flops = 0;
};
Cost cost_of(const Layer& layer);
// Steps run one after the other, each at the resolution that those before have left.
Cost cost_of(const Layer& layer, const std::vector<Step>& steps);

// Puts the steps in the place of the layer's node, or of its twin in another graph. The last one
// has the node's bias and name, and its output the name of the node's.
Status replace(EditView edit, Node node, const Layer& layer, const std::vector<Step>& steps);

}  // namespace tenon::decomposer
