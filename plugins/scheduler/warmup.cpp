// SPDX-License-Identifier: Apache-2.0
// "scheduler.warmup": another schedule, anyone's, with a rise in front of it.
#include "part.hpp"
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Warm {
  Part schedule;
  static Result<Warm> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(schedule, Part::of(ctx, options, "schedule"));
    return Warm{std::move(schedule)};
  }
  Result<double> at(uint64_t step, uint64_t total) const { return schedule.value(step, total); }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(warmup,
            tenon::scheduler::Warm,
            "scheduler.warmup",
            "another schedule after a rise to its first value",
            R"("schedule": {"type": "component", "role": "tenon.schedule/1",
                 "description": "what follows"})",
            R"(["schedule"])")
