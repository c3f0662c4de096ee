// SPDX-License-Identifier: Apache-2.0
// "scheduler.restarts": half a cosine again and again, each `factor` times as long as the one
// before (Loshchilov & Hutter 2017, "SGDR", section 3), as PyTorch's CosineAnnealingWarmRestarts.
#include <numbers>

#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Restarts {
  double base, end, factor;
  uint64_t period;
  static Result<Restarts> create(tn_ctx*, const Options& options) {
    return Restarts{options.number("base"), options.number("end"), options.number("factor"),
                    static_cast<uint64_t>(options.integer("period"))};
  }
  Result<double> at(uint64_t step, uint64_t) const {
    auto length = static_cast<double>(period), gone = static_cast<double>(step);
    if (factor == 1) {
      gone = static_cast<double>(step % period);
    } else {
      for (; gone >= length; length *= factor)
        gone -= length;
    }
    return end + (base - end) * (1 + std::cos(std::numbers::pi * gone / length)) / 2;
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(
    restarts,
    tenon::scheduler::Restarts,
    "scheduler.restarts",
    "half a cosine again and again",
    R"("base": {"type": "number", "default": 1, "description": "first value, also after each restart"},
    "end": {"type": "number", "default": 0, "description": "minimum, before a restart"},
    "period": {"type": "integer", "minimum": 1, "description": "steps until the first restart"},
    "factor": {"type": "number", "minimum": 1, "default": 1, "description": "factor of each period's length to the one before"})",
    R"(["period"])")
