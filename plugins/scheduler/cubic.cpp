// SPDX-License-Identifier: Apache-2.0
// "scheduler.cubic": sparsity that grows fast at first, end + (from - end) * (1 - share)^3 (Zhu &
// Gupta, arXiv 1710.01878, equation 1). Before `start` it is `from`, and it changes each `every`
// steps only.
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Cubic {
  double from, end;
  uint64_t start, every;
  Length length;
  static Result<Cubic> create(tn_ctx*, const Options& options) {
    return Cubic{options.number("from"), options.number("end"),
                 static_cast<uint64_t>(options.integer("start")),
                 static_cast<uint64_t>(options.integer("every")), Length::of(options)};
  }
  Result<double> at(uint64_t step, uint64_t total) const {
    uint64_t gone = saturating_sub(step, start);
    TN_TRY(share, length.share(gone - gone % every, left_of(total, start)));
    TN_TRY(last, length.share(gone, left_of(total, start)));
    if (step < start) return from;
    if (last == 1) return end;  // also where `every` does not divide the steps
    return end + (from - end) * std::pow(1 - share, 3);
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(cubic,
            tenon::scheduler::Cubic,
            "scheduler.cubic",
            "sparsity for gradual pruning",
            R"("from": {"type": "number", "default": 0, "description": "first value"},
    "end": {"type": "number", "default": 0.5, "description": "last value"},
    "start": {"type": "integer", "minimum": 0, "default": 0, "description": "first step that changes"},
    "every": {"type": "integer", "minimum": 1, "default": 1, "description": "steps between two changes"},
    )" TENON_STEPS_OPTION,
            "[]")
