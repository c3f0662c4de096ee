// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights of layers as a quantized model stores them, each with the float one that it stands for:
// int8 by channel, and int4 in blocks.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/weight_grid.hpp"
#include "gram.hpp"

namespace tenon::quantizer {

struct StoredWeight {
  Node dq;  // DequantizeLinear
  GramLayer layer = {};
  Value original = {};
  std::vector<float> factors = {};  // multiplied to the columns behind `dq`; empty: none
};

std::map<std::string, Node, std::less<>> nodes_by_name(Graph graph);
// A DequantizeLinear of constants in 8 bits or fewer.
bool is_stored_weight(Node dq);
// Whether it is the float constant that this one was made of, by its shape.
bool stands_for(Value original, Node dq);

// What keeps a grid from being read off its scales: they are not float32, or lie along another axis
// than `channels`, or in blocks along another one than `sums` (-1: along none). Empty: nothing.
std::string_view scales_refusal(Node dq, int64_t channels, int64_t sums);

// Of products and convolutions that both graphs have a node of one name for. left: is given the
// others, and why.
std::vector<StoredWeight> stored_weights(Graph quantized,
                                         Graph original,
                                         const std::function<void(Node, std::string_view)>& left);

// Quantized values in the order in which they are stored.
std::vector<float> quantized_of(const Tensor& tensor);
// The float weight of one group with its grid. quantized: of the whole weight.
WeightGrid grid_of(const StoredWeight& one, int64_t group, const std::vector<float>& quantized);

}  // namespace tenon::quantizer
