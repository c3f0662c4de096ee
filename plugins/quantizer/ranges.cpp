// SPDX-License-Identifier: Apache-2.0
#include "ranges.hpp"

#include <algorithm>

namespace tenon::quantizer {

Result<Ranges> ranges_of(tn_ctx* ctx,
                         Graph graph,
                         const Assignment& assignment,
                         Feed* feed,
                         const CalibrationPlan& plan,
                         const Cancel& cancel) {
  Ranges out;
  TN_TRY(calibrated, calibrate(ctx, graph, assignment.observed(), feed, plan, cancel));
  out.calibrated = std::move(calibrated);
  out.groups.assign(assignment.group_count(), tn_range{0, 0, 0, 0});
  for (size_t i = 0; i < assignment.observed().size(); ++i) {
    tn_range& group = out.groups[assignment.group_of(assignment.observed()[i])];
    group.low = std::min(group.low, out.calibrated.ranges[i].low);
    group.high = std::max(group.high, out.calibrated.ranges[i].high);
  }
  for (const tn_range& range : out.groups)
    out.params.push_back(params_for(range, plan.observer.symmetric));
  return Result<Ranges>(std::move(out));
}

}  // namespace tenon::quantizer
