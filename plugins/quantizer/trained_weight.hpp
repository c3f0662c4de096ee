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

// Which numbers that are 0 stay so while a weight is trained: those of a pruned one do. Of an
// output channel that has no other numbers it cannot be seen whether it was pruned or begins as
// zeros.
enum class ZerosKept : uint8_t {
  kNone,
  kAmongOthers,  // of output channels that have other numbers as well
  kAll,
};
struct ZeroCounts {
  uint64_t held = 0, trained = 0;
};
// The constant behind a Where with a constant mask; itself where nothing is held. axis: its output
// channels.
Result<Value> with_zeros_kept(
    EditView edit, Value weight, int64_t axis, ZerosKept which, ZeroCounts* counts);

// Scales as they begin where they are learned, [channels] or [1]: those of calibration, but for
// channels of nothing but zeros, of which it cannot know any. They begin as the mean of the others;
// without others, as section 2.1 of Esser et al. has it, 2 mean(|w|) / sqrt(largest value), for
// normal numbers of variance 1 / n where a channel has n.
std::vector<float> first_steps(Value weight, const WeightPlan& plan, std::vector<float> scale);

// `weight`, of the constant of this name, as it is read in 8 bits.
Result<Value> trained_weight(EditView edit,
                             const std::string& name,
                             Value weight,
                             const WeightPlan& plan);
// The same with learned step sizes (Esser et al., ICLR 2020): the scales are a parameter
// `<weight>_step`, [channels] or [1], that begins as `scale`. Its gradient counts 1 / sqrt(numbers
// of one scale * largest quantized value), section 2.2.
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
// quantized value.
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
