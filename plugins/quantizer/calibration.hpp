// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a float model on data and shows the values that matter to observers of anyone's making.

#include <string>
#include <vector>

#include "tenon/role/observer.h"

#include "tenon/sdk/feed.hpp"

namespace tenon::quantizer {

struct CalibrationPlan {
  std::string observer;               // id, or the last word of one of ours
  std::string observer_options;       // JSON object, or empty
  std::vector<std::string> backends;  // the first that is there; empty: the machine's
  bool symmetric = false;
  bool refuse_not_finite = true;

  static CalibrationPlan from(const Options& options);  // `symmetric` is the pass's to say
};

// Whole batches only: a sample that is seen twice would count twice.
inline FeedPlan calibration_feed(const FeedOptions& data) {
  return {
      .user = "calibration", .usual = data.batch, .samples = data.samples, .rest = Rest::kLeftOut};
}

struct Calibrated {
  std::vector<tn_range> ranges;  // one per value
  std::string observer;          // id
  std::string backend;           // that ran the model
};

Result<Calibrated> calibrate(tn_ctx* ctx,
                             Graph graph,
                             const std::vector<Value>& values,
                             Feed* feed,
                             const CalibrationPlan& plan,
                             const Cancel& cancel);

}  // namespace tenon::quantizer
