// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a run is: all that the loop knows besides the states of the step.

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "tenon/sdk/status.hpp"

#include "measured.hpp"
#include "objective.hpp"

namespace tenon::trainer {

// An epoch that goes on with batches of another size than it began with: they are its last ones,
// and begin behind the samples that were seen.
struct Regrouped {
  uint64_t epoch = 0;
  uint64_t batch = 0;    // the first one of this size, as if all before had it too
  uint64_t samples = 0;  // that were seen before
};

struct Position {
  uint64_t epoch = 0;           // epochs that are done
  uint64_t batch = 0;           // batches of the next one that are done
  uint64_t steps = 0;           // batches in all
  uint64_t updates = 0;         // steps that updated: what a schedule counts
  MeanLoss loss;                // of this epoch
  uint64_t samples = 0;         // of this epoch
  uint64_t sequence_steps = 0;  // of its samples, as long as they were cut to
  Regrouped regrouped;          // none: an epoch's first batch, behind no sample
  bool has_best = false;
  double best = 0;  // the best validation so far
  uint64_t best_epoch = 0, bad_epochs = 0;
  double rate = 0;        // the last step's
  uint64_t averaged = 0;  // weights of epochs, in their mean
  bool finished = false, stopped_early = false;
  std::string stopped_by;                                 // the callback that ended the run
  std::map<std::string, Measured, std::less<>> measured;  // of numbers that follow measured values

  // What was measured for this number; nothing yet.
  Measured seen(std::string_view number) const {
    auto found = measured.find(number);
    return found == measured.end() ? Measured() : found->second;
  }
  nlohmann::json to_json() const;
  static Result<Position> from(const nlohmann::json& text);
};

}  // namespace tenon::trainer
