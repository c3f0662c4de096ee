// SPDX-License-Identifier: Apache-2.0
// "scheduler.linear": from + (to - from) * step / steps, then to.
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Linear {
  double from, to;
  Length length;
  static Result<Linear> create(tn_ctx*, const Options& options) {
    return Linear{options.number("from"), options.number("to"), Length::of(options)};
  }
  Result<double> at(uint64_t step, uint64_t total) const {
    TN_TRY(share, length.share(step, total));
    return share < 1 ? from + (to - from) * share : to;
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(linear,
            tenon::scheduler::Linear,
            "scheduler.linear",
            "a straight line from one value to another",
            R"("from": {"type": "number", "default": 1, "description": "first value"},
    "to": {"type": "number", "default": 0, "description": "last value"}, )" TENON_STEPS_OPTION,
            "[]")
