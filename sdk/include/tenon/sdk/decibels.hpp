// SPDX-License-Identifier: Apache-2.0
#pragma once
// Signal to noise as reports and metrics give it.

#include <algorithm>
#include <cmath>

namespace tenon {

// Of sums of squares. Equal numbers give 200 and what is not finite -200: a report holds numbers.
inline double decibels(double signal, double noise) {
  constexpr double kMost = 200;
  if (!std::isfinite(noise) || !std::isfinite(signal)) return -kMost;
  if (noise <= 0) return kMost;
  return signal > 0 ? std::clamp(10 * std::log10(signal / noise), -kMost, kMost) : -kMost;
}

}  // namespace tenon
