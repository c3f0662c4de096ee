// SPDX-License-Identifier: Apache-2.0
#pragma once
// A weight that stays a float constant and is rounded in the graph, so that training moves it: by a
// scale that follows its largest numbers, or by one that is trained as well. And the constants that
// it becomes afterwards.

#include <string>
#include <vector>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/run.hpp"

#include "scale.hpp"

namespace tenon::quantizer {

// Zeros of a constant that stay zeros while it is trained, as those of a pruned weight: it behind a
// Where with a constant mask. The constant itself where it has none.
Result<Value> with_zeros_kept(EditView edit, Value weight);

// `weight`, of the constant of this name, as it is read in 8 bits.
Result<Value> trained_weight(EditView edit,
                             const std::string& name,
                             Value weight,
                             const WeightPlan& plan);
// The same with learned step sizes (Esser et al., ICLR 2020): the scales are a parameter
// `<weight>_step`, [channels] or [1], that begins as `scale`. Its gradient counts 1 / sqrt(numbers
// of one scale * largest code), section 2.2.
Result<Value> learned_weight(EditView edit,
                             const std::string& name,
                             Value weight,
                             const WeightPlan& plan,
                             const std::vector<float>& scale);

// QuantizeLinear and DequantizeLinear behind `numbers`, which stand for the weight of this name.
Result<Value> rounded_weight(
    EditView edit, const std::string& name, Value numbers, Value scale, const WeightPlan& plan);

// Step sizes that are learned (section 2.2): a parameter `<name>_step` that begins as `first`,
// whose gradient counts 1 / sqrt(numbers), `numbers` being those of one scale times the largest
// code.
Value learned_step(Builder& b,
                   const std::string& name,
                   const std::vector<float>& first,
                   double numbers);
// Learned scales of activations as constants; how many.
Result<uint64_t> fold_steps(EditView edit);

struct TrainedWeight {
  Node quantize, dequantize;
  std::string name;             // of the constant
  std::vector<Node> nodes;      // what makes the rounded numbers, the QuantizeLinear last
  Tensor numbers, scale, zero;  // filled in by round_weights; zero: may be absent
};

// What constants alone make for a QuantizeLinear, to be read by a DequantizeLinear alone.
std::vector<TrainedWeight> find_trained_weights(Graph graph);
// What the nodes make of the constants as they are now.
Status round_weights(tn_ctx* ctx,
                     Graph graph,
                     std::vector<TrainedWeight>* weights,
                     const Cancel& cancel);
// Puts the rounded numbers in their place.
Status fold_weight(EditView edit, const TrainedWeight& weight);

}  // namespace tenon::quantizer
