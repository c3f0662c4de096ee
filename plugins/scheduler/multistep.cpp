// SPDX-License-Identifier: Apache-2.0
// "scheduler.multistep": base * gamma^(milestones reached), as PyTorch's MultiStepLR.
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct MultiStep {
  double base, gamma;
  std::vector<int64_t> milestones;
  static Result<MultiStep> create(tn_ctx*, const Options& options) {
    MultiStep out{options.number("base"), options.number("gamma"),
                  ints_of(options.get("milestones"))};
    for (size_t i = 0; i < out.milestones.size(); ++i) {
      int64_t least = i == 0 ? 0 : out.milestones[i - 1] + 1;
      if (out.milestones[i] < least)
        return invalid(cat("option milestones: expected rising steps from 0 on, got ",
                           out.milestones[i], " at place ", i + 1));
    }
    return out;
  }
  Result<double> at(uint64_t step, uint64_t) const {
    auto reached = std::count_if(milestones.begin(), milestones.end(), [&](int64_t milestone) {
      return static_cast<uint64_t>(milestone) <= step;
    });
    return base * std::pow(gamma, static_cast<double>(reached));
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(multistep,
            tenon::scheduler::MultiStep,
            "scheduler.multistep",
            "a factor at each of some steps",
            R"("base": {"type": "number", "default": 1, "description": "first value"},
    "milestones": {"type": "array", "items": {"type": "integer"},
                   "description": "milestones: steps at which the value is multiplied by the factor"},
    "gamma": {"type": "number", "minimum": 0, "default": 0.1, "description": "the factor"})",
            R"(["milestones"])")
