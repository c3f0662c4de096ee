// SPDX-License-Identifier: Apache-2.0
#pragma once
// A weight that stays a float constant and is rounded in the graph, by a scale that follows its
// largest numbers, so that training moves it; and the constants that it becomes afterwards.

#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/run.hpp"

#include "scale.hpp"

namespace tenon::quantizer {

// The weight as it is read in 8 bits.
Result<Value> trained_weight(EditView edit, Value weight, const WeightPlan& plan);

struct TrainedWeight {
  Node quantize, dequantize;
  std::string name;             // of the constant
  std::vector<Node> nodes;      // what makes the rounded numbers, the QuantizeLinear last
  Tensor numbers, scale, zero;  // filled in by round_weights; zero: may be absent
};

// Constants that a QuantizeLinear reads, to be read by a DequantizeLinear alone.
std::vector<TrainedWeight> find_trained_weights(Graph graph);
// What the nodes make of the constants as they are now.
Status round_weights(tn_ctx* ctx,
                     Graph graph,
                     std::vector<TrainedWeight>* weights,
                     const Cancel& cancel);
// Puts the rounded numbers in their place.
Status fold_weight(EditView edit, const TrainedWeight& weight);

}  // namespace tenon::quantizer
