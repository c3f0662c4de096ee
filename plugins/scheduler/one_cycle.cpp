// SPDX-License-Identifier: Apache-2.0
// "scheduler.one_cycle": up, down, and far down (Smith & Topin, arXiv 1708.07120), with the phases
// of PyTorch's OneCycleLR.
#include <array>
#include <numbers>

#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct OneCycle {
  double base, rise, div, final_div;
  bool is_linear, has_three_phases;
  Length length;

  static Result<OneCycle> create(tn_ctx*, const Options& options) {
    return OneCycle{options.number("base"),
                    options.number("rise"),
                    options.number("div"),
                    options.number("final_div"),
                    options.text("shape") == "linear",
                    options.flag("three_phases"),
                    Length::of(options)};
  }
  double between(double from, double to, double share) const {
    if (is_linear) return from + (to - from) * share;
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
  }
  Result<double> at(uint64_t step, uint64_t total) const {
    TN_TRY(steps, length.of_caller(total));
    if (steps < 2)
      return invalid(cat(
          "option steps, or what the caller has after a warmup: expected at least 2, got ", steps));
    // Ends of the phases, and the values there; the last step is steps - 1.
    double all = static_cast<double>(steps), low = base / div, lowest = low / final_div;
    std::array<double, 4> end{0, rise * all - 1, 2 * rise * all - 2, all - 1};
    std::array<double, 4> value{low, base, low, lowest};
    size_t first = 1, last = 3;
    if (!has_three_phases) end[2] = end[3], value[2] = lowest, last = 2;
    double now = static_cast<double>(std::min(step, steps - 1));
    size_t phase = first;
    while (phase < last && now > end[phase])
      ++phase;
    double width = end[phase] - end[phase - 1];
    if (width <= 0) return value[phase];  // a rise of no steps
    return between(value[phase - 1], value[phase], (now - end[phase - 1]) / width);
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(one_cycle,
            tenon::scheduler::OneCycle,
            "scheduler.one_cycle",
            "rises, falls, and ends far below its first value",
            R"("base": {"type": "number", "default": 1, "description": "highest value"},
    "rise": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.3,
             "description": "share of the steps until the highest value"},
    "div": {"type": "number", "exclusiveMinimum": 0, "default": 25,
            "description": "highest over first value"},
    "final_div": {"type": "number", "exclusiveMinimum": 0, "default": 10000,
                  "description": "first over last value"},
    "shape": {"type": "string", "enum": ["cos", "linear"], "default": "cos",
              "description": "of rise and fall"},
    "three_phases": {"type": "boolean", "default": false,
                     "description": "fall as long as it rose, then to the end"}, )" TENON_STEPS_OPTION,
            "[]")
