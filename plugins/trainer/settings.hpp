// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of trainer.train, read and put together.

#include "tenon/sdk/component.hpp"

#include "callbacks.hpp"
#include "curriculum.hpp"
#include "driven.hpp"
#include "epoch_average.hpp"
#include "validation.hpp"

namespace tenon::trainer {

struct Settings {
  Component data, loss, optimizer;
  std::vector<Driven> driven;           // without the learning rate
  std::string driven_text;              // what says that they are the same
  Driven rate_rules;                    // of the learning rate, whose schedule is the one below
  std::optional<Driven> length, share;  // of the curriculum
  CurriculumChoice curriculum;
  Component schedule;    // falsy: `rate` at each step
  Component validation;  // falsy: `validation_share` of the data
  double rate = 0.01, validation_share = 0;
  uint64_t rate_batch = 0;   // the batch that the rate is for; 0: whatever it is
  std::string plateau_text;  // as it was given
  Callbacks callbacks;
  std::vector<std::string> targets;
  uint64_t epochs = 1, seed = 0;
  std::optional<uint64_t> batch;
  uint64_t memory = 0;       // bytes: the largest batch that fits; 0: no limit
  uint64_t step_shapes = 8;  // compiled steps that are kept, one for each shape of a batch
  bool shuffle = true, drop_last = false;
  double clip_norm = 0, clip_value = 0;
  uint64_t accumulate = 1;  // batches to an update
  double average = 0;       // of the weights; 0: none
  EpochAverage swa;
  bool check_nan = false;
  std::string groups;
  ParameterChoice parameters;
  bool batch_statistics = true;
  std::string precision;     // fp32, bf16, fp16, fp64, fp8, tf32
  std::string fp8;           // options of precision.fp8, a JSON object
  std::string level = "O1";  // of mixed precision, as Apex names them
  std::string loss_scale;    // options of the scaler, a JSON object
  std::string drop_layers;   // options of trainer.drop_layers, a JSON object; empty: none
  uint64_t layer_seed = 0;   // of its draws
  bool reports_gradients = false;
  std::vector<PassChoice> joint;
  std::vector<std::string> backends;  // as they were given; empty: the machine's best
  int64_t threads = 0;
  std::string backend_options = "{}";  // of the backend's own
  MetricChoice metric;
  std::vector<PassChoice> train_as, validate_as;
  uint64_t patience = 0;  // 0: no early stopping
  double min_delta = 0;
  bool restore_best = true;
  std::string run;  // folder; empty: nothing is kept
  bool resume = false;
  uint64_t checkpoint_steps = 0;
  std::vector<uint64_t> keep_steps;
  uint64_t keep_last = 0;    // checkpoints of the newest epochs
  uint64_t shard_bytes = 0;  // the most of one file; 0: any
  std::string rewind;        // a checkpoint to begin at; empty: at the beginning

  static Result<Settings> from(tn_ctx* ctx, const Options& options);
  // Of the plans that run steps in the precision that was asked for, or that validate in float32:
  // a JSON object.
  std::string plan_options(bool in_precision) const;
  // Whether the backend computes in this precision by itself, on a graph in float32.
  bool is_computed_by(tn_ctx* ctx, std::string_view backend) const;
  // Whether plans of the backend have an option of this name.
  static bool has_option(tn_ctx* ctx, std::string_view backend, std::string_view name);
};

}  // namespace tenon::trainer
