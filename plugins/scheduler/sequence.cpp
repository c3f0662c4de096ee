// SPDX-License-Identifier: Apache-2.0
// "scheduler.sequence": one schedule up to a step, then another, which counts from 0 again, as in
// PyTorch's SequentialLR. More than two: `second` is a sequence.
#include "part.hpp"
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Sequence {
  Part first, second;
  uint64_t at_step;
  static Result<Sequence> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(first, Part::of(ctx, options, "first"));
    TN_TRY(second, Part::of(ctx, options, "second"));
    return Sequence{std::move(first), std::move(second),
                    static_cast<uint64_t>(options.integer("at"))};
  }
  Result<double> at(uint64_t step, uint64_t total) const {
    if (step < at_step) return first.value(step, at_step);
    return second.value(step - at_step, left_of(total, at_step));
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(sequence,
            tenon::scheduler::Sequence,
            "scheduler.sequence",
            "one schedule after another",
            R"("first": {"type": "component", "role": "tenon.schedule/1",
              "description": "up to the step `at`"},
    "second": {"type": "component", "role": "tenon.schedule/1",
               "description": "from then on, counted from 0"},
    "at": {"type": "integer", "minimum": 0, "description": "first step of the second"})",
            R"(["first", "second", "at"])")
