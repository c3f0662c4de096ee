// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights that are signs times a scale for each output channel, however a file states them: as
// floats of one size a channel, or as such integers behind a DequantizeLinear. Looked at in the
// graph, before anything is lowered.

#include <optional>
#include <vector>

#include "graph.hpp"

namespace tenon::onednn {

struct BinaryWeights {
  int constant = kNone;           // the value that holds the numbers
  std::vector<bool> signs;        // set: +1; in the order of the weight's numbers
  std::vector<float> magnitudes;  // [channels], over 0
};
// nullopt: they are others, or not known. axis: of the output channels.
std::optional<BinaryWeights> binary_weights(const Graph& graph, int value, size_t axis);

// The axis of a convolution's or product's weights that its output channels lie along.
size_t weight_channels(const Node& node);

// Whether the node is a convolution or product that reads `value` as its left operand alone, by
// such weights, and can be computed from packed signs.
bool multiplies_signs(const Graph& graph, int node, int value);

}  // namespace tenon::onednn
