// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attributes of one integer for each axis, which may be left out.

#include <algorithm>

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

using Ints = std::vector<int64_t>;

inline Ints ints_or(Node node, std::string_view name, size_t n, int64_t fallback) {
  Ints out = node.attr_ints(name);
  return out.empty() ? Ints(n, fallback) : out;
}

// Sizes, steps and padding that sums of a few stay within 64 bits with.
inline Status expect_moderate(std::string_view name,
                              const Ints& list,
                              int64_t least,
                              int64_t most = INT32_MAX) {
  for (int64_t number : list)
    if (number < least || number > most)
      return invalid(cat(name, ": expected numbers in ", least, "..", most, ", got ", number));
  return {};
}

// Axes that are non-negative already, or a shape's places: no one may be there twice.
inline Status expect_once(std::string_view name, Ints axes) {
  std::sort(axes.begin(), axes.end());
  auto twice = std::adjacent_find(axes.begin(), axes.end());
  return twice == axes.end() ? Status() : invalid(cat(name, ": axis ", *twice, " is there twice"));
}

// A shape that a tensor can have: not too many axes, and a number of elements that can be counted.
inline Status expect_shape(std::string_view name, const Ints& shape) {
  constexpr size_t kMostAxes = 64;
  if (shape.size() > kMostAxes)
    return invalid(cat(name, ": expected at most ", kMostAxes, " axes, got ", shape.size()));
  int64_t n = 64;  // bits of the widest element
  for (int64_t dim : shape) {
    if (dim < 0) return invalid(cat(name, ": expected sizes from 0, got ", dim));
    if (__builtin_mul_overflow(n, std::max<int64_t>(dim, 1), &n))
      return invalid(cat(name, ": more elements than 64 bits count"));
  }
  return {};
}

}  // namespace tenon::ops
