// SPDX-License-Identifier: Apache-2.0
#pragma once
// A number that follows a measured value, not time alone: how far the value has come on its way
// (Follow), or that it gets no better (plateau.hpp). What was seen is a value of its own, which a
// run keeps; the rest are pure functions of it.

#include <algorithm>
#include <cmath>
#include <string>

#include "plateau.hpp"

namespace tenon::trainer {

// A schedule over the way of a measured value: at its first step while the value is at `begin` or
// before it, at its last one from `end` on. It never goes backwards.
struct Follow {
  static constexpr uint64_t kSteps = 1'000'000;  // of a schedule over the whole way

  std::string value;  // a number of an epoch's record: loss, validation_loss, accuracy
  double begin = 0, end = 1;

  double see(double measured, double share) const {
    double now = (measured - begin) / (end - begin);
    return std::isfinite(now) ? std::clamp(now, share, 1.0) : share;
  }
  static uint64_t step(double share) {
    return static_cast<uint64_t>(std::llround(share * static_cast<double>(kSteps)));
  }
};

struct Measured {  // of one number, so far
  double share = 0;
  Plateau::State plateau;
};

}  // namespace tenon::trainer
