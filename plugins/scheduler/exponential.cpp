// SPDX-License-Identifier: Apache-2.0
// "scheduler.exponential": end + (base - end) * gamma^step. With end 0 PyTorch's ExponentialLR;
// with base 1 the keep rate of progressive layer dropping (Zhang & He, arXiv 2010.13369).
#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Exponential {
  double base, end, gamma;
  static Result<Exponential> create(tn_ctx*, const Options& options) {
    return Exponential{options.number("base"), options.number("end"), options.number("gamma")};
  }
  Result<double> at(uint64_t step, uint64_t) const {
    return end + (base - end) * std::pow(gamma, static_cast<double>(step));
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(exponential,
            tenon::scheduler::Exponential,
            "scheduler.exponential",
            "the same factor each step",
            R"("base": {"type": "number", "default": 1, "description": "first value"},
    "end": {"type": "number", "default": 0, "description": "the limit"},
    "gamma": {"type": "number", "exclusiveMinimum": 0, "maximum": 1,
              "description": "factor of a step"})",
            R"(["gamma"])")
