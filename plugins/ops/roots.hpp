// SPDX-License-Identifier: Apache-2.0
#pragma once
// Roots of sums of powers, for the decompose columns of norms.

#include "tenon/sdk/build.hpp"

namespace tenon::ops {

// The p-th root of a sum of p-th powers. A root is infinitely steep at 0, but a norm has a kink
// there, and so the slope 0.
inline Value root(Builder& b, Value sum, double p = 2) {
  if (!b.status().ok()) return {};
  Value zero = b.number(0, sum.dtype()), is_zero = b.op("Equal", {sum, zero});
  Value safe = b.op("Where", {is_zero, b.number(1, sum.dtype()), sum});
  Value y = p == 2 ? b.op("Sqrt", {safe}) : b.op("Pow", {safe, b.number(1 / p, sum.dtype())});
  return b.op("Where", {is_zero, zero, y});
}

}  // namespace tenon::ops
