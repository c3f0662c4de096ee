// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiled training steps, one for each batch size and set of layers, on states in common.

#include <array>
#include <memory>
#include <optional>

#include "tenon/sdk/plan.hpp"

#include "step_graph.hpp"

namespace tenon::trainer {

// What a step is given besides its batch.
struct StepInputs {
  double rate = 0;
  bool updates = true;  // the last batch of its window, where several are accumulated
  std::map<std::string, double> settings;  // by Recipe::driven
};

struct Outcome {
  double loss = 0;
  std::optional<std::array<double, 5>> gradients;  // counts, as GradientShares has them
  bool skipped = false;   // gradients overflowed under loss scaling: nothing was updated
  std::string first_nan;  // where the first NaN is, if that is looked for
};

class Stepper {
 public:
  // options: of the plans, a JSON object.
  Stepper(const Recipe& recipe, const std::string& options);

  // Builds and compiles the step for batches of these sizes. Plans for another length are given up:
  // a length that changed does not come back.
  Status use(StepSizes sizes, const Cancel& cancel);
  // Of the sets of layers, which there are once a step is in use.
  const LayerDraws& layers() const { return layers_; }
  // What a step takes as its backend plans it: results, weights in kernels' layouts, states, and
  // the batches that lie ready beside it.
  Result<uint64_t> planned_bytes(StepSizes sizes, const Cancel& cancel) const;
  // Inputs and targets, in the order of the recipe, for the batch size in use.
  Result<Outcome> run(std::span<const DLTensor> batch, const StepInputs& inputs);

  // Of the step in use.
  const StepGraph& graph() const { return now_->graph; }
  Result<Weights> states() const;  // copies
  Result<Weights> states(const std::vector<std::string>& names) const;
  Status set_states(const Weights& states);                       // all of them
  std::string describe() const { return now_->plan.describe(); }  // JSON
  // What compiling took, and of how many steps.
  double compile_seconds() const { return compile_seconds_; }
  uint64_t compiled() const { return compiled_; }

 private:
  struct Compiled {
    StepGraph graph;
    Plan plan;
    bool is_compiled = false;
  };
  Result<std::unique_ptr<Compiled>> make(StepSizes sizes, const Cancel& cancel) const;
  Status start(StepSizes sizes, const Cancel& cancel);
  // For inputs like these, where that is not done.
  Status compile_now(std::span<const DLTensor> inputs);

  const Recipe* recipe_;
  std::string options_;                 // with a name for the states that all plans share
  std::map<std::string, Type> states_;  // of the step that leaves no layer out
  LayerDraws layers_;
  double compile_seconds_ = 0;
  uint64_t compiled_ = 0;
  std::map<StepSizes, std::unique_ptr<Compiled>> made_;
  Compiled* now_ = nullptr;
};

}  // namespace tenon::trainer
