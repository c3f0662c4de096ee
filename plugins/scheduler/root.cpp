// SPDX-License-Identifier: Apache-2.0
// "scheduler.root": from + (to - from) * (step / steps)^(1 / degree): the growth of sequence
// lengths in a curriculum (Li et al., arXiv 2108.06084); with "multiple" they stay multiples.
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Root {
  double from, to, degree;
  Length length;
  static Result<Root> create(tn_ctx*, const Options& options) {
    return Root{options.number("from"), options.number("to"), options.number("degree"),
                Length::of(options)};
  }
  Result<double> at(uint64_t step, uint64_t total) const {
    TN_TRY(share, length.share(step, total));
    return share < 1 ? from + (to - from) * std::pow(share, 1 / degree) : to;
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(root,
            tenon::scheduler::Root,
            "scheduler.root",
            "grows with a root of the time that has gone",
            R"("from": {"type": "number", "default": 0, "description": "first value"},
    "to": {"type": "number", "default": 1, "description": "last value"},
    "degree": {"type": "number", "exclusiveMinimum": 0, "default": 2, "description": "exponent; 1: linear"},
    )" TENON_STEPS_OPTION,
            "[]")
