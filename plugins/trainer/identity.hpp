// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run is of. A checkpoint is for a run that says the same of itself: it goes on to the same
// bits only with the same model, options, losses, updates and rates.

#include <functional>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "tenon/sdk/graph.hpp"

namespace tenon::trainer {

// The operators of a step with their attributes, and its constants, each with how often it is
// there, and a hash of the whole. Losses and optimizers are live components that keep their options
// for themselves; what they write into the step says all that matters of them.
struct StepContents {
  uint64_t hash = 0;
  std::map<std::string, uint64_t> counts;
  static Result<StepContents> of(Graph step);
};

// A schedule may be a function of a script, which is known by its values alone.
using RateAt = std::function<Result<double>(uint64_t step, uint64_t total_steps)>;
struct Rates {
  uint64_t total_steps = 0;
  std::map<uint64_t, double> at;  // some steps, the first and the last among them
  static Result<Rates> of(const RateAt& rate, uint64_t total_steps);
};

struct Identity {
  uint64_t model = 0;      // a hash of the graph's structure
  nlohmann::json choices;  // options that decide the numbers
  StepContents step;
  Rates rates;
  std::string writer = TENON_PLUGIN_VERSION;  // reported, not compared

  nlohmann::json to_json() const;
  static Result<Identity> from(const nlohmann::json& saved);
};

uint64_t structure_hash(Graph graph);

// What a run may go on with another value of.
inline constexpr std::string_view kBatch = "batch";

// Which model, then which option but kBatch, is not the same.
Status same_choices(const Identity& began, const Identity& now);
Status same_options(const Identity& began, const Identity& now);  // whatever the model
Status same_step(const Identity& began, const Identity& now);
// `began` decides about the steps to look at, so that a run may go on for more epochs.
Status same_rates(const Identity& began, const RateAt& now);

}  // namespace tenon::trainer
