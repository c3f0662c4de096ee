// SPDX-License-Identifier: Apache-2.0
// "scheduler.step": base * gamma^floor(step / every), as PyTorch's StepLR.
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Step {
  double base, gamma;
  uint64_t every;
  static Result<Step> create(tn_ctx*, const Options& options) {
    return Step{options.number("base"), options.number("gamma"),
                static_cast<uint64_t>(options.integer("every"))};
  }
  Result<double> at(uint64_t step, uint64_t) const {
    return base * std::pow(gamma, static_cast<double>(step / every));
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(step,
            tenon::scheduler::Step,
            "scheduler.step",
            "a factor each so many steps",
            R"("base": {"type": "number", "default": 1, "description": "first value"},
    "every": {"type": "integer", "minimum": 1, "description": "steps between two changes"},
    "gamma": {"type": "number", "minimum": 0, "default": 0.1, "description": "factor of a change"})",
            R"(["every"])")
