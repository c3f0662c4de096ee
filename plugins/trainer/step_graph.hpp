// SPDX-License-Identifier: Apache-2.0
#pragma once
// The graph of one training step: the model as it trains, the loss, mixed precision, gradients,
// clipping, the update. Each part but the first two is a pass of some plugin.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/graph.hpp"

#include "drop_layers.hpp"
#include "parameters.hpp"
#include "training_mode.hpp"

namespace tenon::trainer {

// What plans of a step differ in.
struct StepSizes {
  uint64_t batch = 0, length = 0;  // samples; steps of their sequences, 0: as many as there are
  uint64_t layer_set = 0;          // of those that drop_layers leaves out together; 0: all run
  auto operator<=>(const StepSizes&) const = default;
};

// A field of the data set as an input of the step.
struct Field {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> sample;     // shape of one sample
  std::optional<int64_t> classes;  // where it holds class numbers: how many there are,
  std::optional<int64_t> ignored;  // and which number stands for none
  bool is_shortened = false;       // the first axis of a sample follows StepSizes::length
  Type type_for(StepSizes sizes) const;
};

// A pass, and its options as a JSON object.
struct PassChoice {
  std::string id, options = "{}";
};

struct Recipe {
  tn_ctx* ctx = nullptr;
  const tn_graph* model = nullptr;
  std::vector<Field> inputs, targets;   // inputs in the model's order
  std::vector<std::string> parameters;  // names of constants
  bool is_double = false;               // steps are in float64
  Component loss, optimizer;
  std::string groups;  // of trainer.step, a JSON object
  std::string precision = "fp32", device = "cpu";
  std::string level = "O1", loss_scale = "{}";  // of precision.autocast; options of the scaler
  std::string fp8 = "{}";                       // options of precision.fp8
  std::vector<PassChoice> joint;                // on forward and backward together
  std::string plan_precision = "fp32";          // in which a plan of the step computes
  bool reports_gradients = false;               // what float16 would make of them
  double clip_norm = 0, clip_value = 0;         // 0: none
  std::string drop_layers;                      // options of trainer.drop_layers; empty: none
  bool accumulates = false;                     // several batches to an update
  double average = 0;                           // of the weights, how much is kept; 0: none
  std::vector<std::string> driven;              // options of loss and optimizer that change by step
  TrainingMode mode;
  std::vector<PassChoice> train_as;  // make what is trained of the model, before the loss
  uint64_t steps_per_epoch = 0;      // what these passes may want to know
  bool check_nan = false;            // the step says which of its values has the first NaN
};

struct StepGraph {
  OwnedGraph graph;
  std::vector<std::string> weights;  // states that are constants of the model
  Weights initial;                   // what states start with that do not start as zeros
  std::optional<size_t> loss, found_inf, first_nan, histogram;  // among the results of a run
  std::optional<size_t> share, divisor;    // of the loss, as objective.hpp notes them
  std::vector<std::string> watched;        // where check_nan looks, in that order
  std::vector<std::string> numbers;        // inputs behind those of the batch
  std::vector<Field> targets;              // with what the loss says of them
  std::vector<std::string> joint_reports;  // of Recipe::joint, JSON objects
  LayerDraws layers;                       // that steps leave out
};

// The state with the average of a weight.
inline std::string average_of(const std::string& weight) {
  return weight + "/average";
}

Result<StepGraph> make_step(const Recipe& recipe, StepSizes sizes, const Cancel& cancel);

// The model as it is, with the loss of these targets as another output, called "loss". They may be
// of another type than those of the step: classes, where mixed samples have shares of them.
Result<OwnedGraph> make_evaluation(const Recipe& recipe,
                                   const tn_graph* model,
                                   const std::vector<Field>& targets);

// Runs a pass on the graph itself; *report: what it says of it, a JSON object.
Status apply_pass(tn_ctx* ctx,
                  tn_graph* graph,
                  const PassChoice& pass,
                  const Cancel& cancel,
                  std::string* report = nullptr);

}  // namespace tenon::trainer
