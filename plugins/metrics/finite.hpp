// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of a report, which is JSON: it has no infinity, and the largest number stands for it. NaN
// stays, and is null there.

#include <algorithm>
#include <limits>

namespace tenon::metrics {

inline double finite(double number) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return std::clamp(number, -kMost, kMost);
}

}  // namespace tenon::metrics
