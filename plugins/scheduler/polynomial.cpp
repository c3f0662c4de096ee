// SPDX-License-Identifier: Apache-2.0
// "scheduler.polynomial": end + (base - end) * (1 - step / steps)^power, as PyTorch's PolynomialLR,
// which has end 0.
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Polynomial {
  double base, end, power;
  Length length;
  static Result<Polynomial> create(tn_ctx*, const Options& options) {
    return Polynomial{options.number("base"), options.number("end"), options.number("power"),
                      Length::of(options)};
  }
  Result<double> at(uint64_t step, uint64_t total) const {
    TN_TRY(share, length.share(step, total));
    return end + (base - end) * std::pow(1 - share, power);
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(polynomial,
            tenon::scheduler::Polynomial,
            "scheduler.polynomial",
            "falls with a power of the time that is left",
            R"("base": {"type": "number", "default": 1, "description": "first value"},
    "end": {"type": "number", "default": 0, "description": "last value"},
    "power": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "exponent; 1: linear"},
    )" TENON_STEPS_OPTION,
            "[]")
