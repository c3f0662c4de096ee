// SPDX-License-Identifier: Apache-2.0
#pragma once
// From calibration data to the scale of each group of values: the first half of every pass that
// rounds activations.

#include <vector>

#include "assignment.hpp"
#include "calibration.hpp"
#include "scale.hpp"

namespace tenon::quantizer {

struct Ranges {
  std::vector<tn_range> groups;  // one per group of the assignment: a range that holds all of it
  std::vector<Params> params;    // scale and zero point of each
  Calibrated calibrated;         // by which observer, on which backend
};

// Symmetric int8 where the plan's observer is symmetric, else uint8.
Result<Ranges> ranges_of(tn_ctx* ctx,
                         Graph graph,
                         const Assignment& assignment,
                         Feed* feed,
                         const CalibrationPlan& plan,
                         const Cancel& cancel);

}  // namespace tenon::quantizer
