// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the passes with ranges from calibration data do; they differ in what becomes of weights.

#include "tenon/sdk/role/pass.hpp"

#include "calibration.hpp"
#include "insertion.hpp"

namespace tenon::quantizer {

class CalibratedPass {
 public:
  static Result<CalibratedPass> create(tn_ctx* ctx, const Options& options);
  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink);

 protected:
  Status check_ranges(const Assignment& assignment, Graph graph) const;

  InsertionPlan insertion_;
  tn_ctx* ctx_ = nullptr;
  FeedOptions data_;
  Choices choices_;
  CalibrationPlan plan_;
};

}  // namespace tenon::quantizer
