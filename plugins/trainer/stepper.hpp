// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiled training steps, one for each shape of a batch and set of layers, on states in common: a
// step goes on where another one has ended, and nothing is copied between them. Those of the shapes
// used last are kept.

#include <array>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>

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
  double share = 1, divisor = 1;                   // of what the loss is the mean (objective.hpp)
  std::optional<std::array<double, 5>> gradients;  // counts, as GradientShares has them
  bool skipped = false;   // gradients overflowed under loss scaling: nothing was updated
  std::string first_nan;  // where the first NaN is, if that is looked for
};

class Stepper {
 public:
  // options: of the plans, a JSON object. most_shapes: that are kept, at least 1.
  Stepper(const Recipe& recipe, std::string options, uint64_t most_shapes)
      : recipe_(&recipe), options_(std::move(options)), most_shapes_(most_shapes) {}

  // What backends decided as they compiled steps and may decide otherwise on another machine or
  // day: lines that plans report under this name, and take as an option of it. A run that follows
  // those of an earlier one has the same steps to the last bit.
  static constexpr const char* kDecisions = "choices";
  const std::set<std::string>& decisions() const { return decisions_; }
  void follow(const std::set<std::string>& decisions);  // before the first use

  // Builds and compiles the step for batches of these sizes, where none is kept.
  Status use(StepSizes sizes, const Cancel& cancel);
  // Of the sets of layers, which there are once a step is in use.
  const LayerDraws& layers() const { return layers_; }
  // What a step takes as its backend plans it: results, weights in kernels' layouts, states, and
  // the batches that lie ready beside it.
  Result<uint64_t> planned_bytes(StepSizes sizes, const Cancel& cancel) const;
  // Inputs and targets, in the order of the recipe, for the batch size in use.
  Result<Outcome> run(std::span<const DLTensor> batch, const StepInputs& inputs);

  // Of the step in use.
  const StepGraph& graph() const { return now().graph; }
  std::vector<std::string> state_names() const;  // sorted
  Result<Weights> states() const;                // copies
  Result<Weights> states(const std::vector<std::string>& names) const;
  Status set_states(const Weights& states);                       // all of them
  std::string describe() const { return now().plan.describe(); }  // JSON
  // What compiling took, and of how many steps, those that are gone counted.
  double compile_seconds() const { return compile_seconds_; }
  uint64_t compiled() const { return compiled_; }

 private:
  struct Compiled {
    StepGraph graph;
    Plan plan;
    bool is_compiled = false;
  };
  struct Kept {
    StepSizes sizes;
    std::unique_ptr<Compiled> step;
  };
  Compiled& now() const { return *kept_.front().step; }
  Status add(StepSizes sizes, const Cancel& cancel);
  Status check_shared_states() const;
  void drop_old_shapes();
  Result<std::unique_ptr<Compiled>> make(StepSizes sizes, const Cancel& cancel) const;
  Status start(StepSizes sizes, const Cancel& cancel);
  // For inputs like these, where that is not done.
  Status compile_now(std::span<const DLTensor> inputs);
  void note_decisions();

  const Recipe* recipe_;
  std::string options_;
  uint64_t most_shapes_;
  std::map<std::string, Type> states_;  // of the step that leaves no layer out
  LayerDraws layers_;
  std::set<std::string> decisions_;
  double compile_seconds_ = 0;
  uint64_t compiled_ = 0;
  std::list<Kept> kept_;  // the one in use first
};

}  // namespace tenon::trainer
