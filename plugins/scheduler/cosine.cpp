// SPDX-License-Identifier: Apache-2.0
// "scheduler.cosine": end + (base - end) * (1 + cos(pi * step / steps)) / 2 (Loshchilov & Hutter,
// ICLR 2017), then end. PyTorch's CosineAnnealingLR is the same up to the end, and rises after it.
#include <numbers>

#include "timed.hpp"

namespace tenon::scheduler {
namespace {

struct Cosine {
  double base, end;
  Length length;
  static Result<Cosine> create(tn_ctx*, const Options& options) {
    return Cosine{options.number("base"), options.number("end"), Length::of(options)};
  }
  Result<double> at(uint64_t step, uint64_t total) const {
    TN_TRY(share, length.share(step, total));
    if (share == 1) return end;
    return end + (base - end) * (1 + std::cos(std::numbers::pi * share)) / 2;
  }
};

}  // namespace
}  // namespace tenon::scheduler

TENON_TIMED(cosine,
            tenon::scheduler::Cosine,
            "scheduler.cosine",
            "half a cosine from one value to another",
            R"("base": {"type": "number", "default": 1, "description": "first value"},
    "end": {"type": "number", "default": 0, "description": "last value"}, )" TENON_STEPS_OPTION,
            "[]")
