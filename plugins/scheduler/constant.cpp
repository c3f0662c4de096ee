// SPDX-License-Identifier: Apache-2.0
// "scheduler.constant": base.
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Constant {
  double base;
  static Result<Constant> create(tn_ctx*, const Options& options) {
    return Constant{options.number("base")};
  }
  Result<double> at(uint64_t, uint64_t) const { return base; }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(constant,
            tenon::scheduler::Constant,
            "scheduler.constant",
            "the same value all the time",
            R"("base": {"type": "number", "default": 1, "description": "the value"})",
            "[]")
