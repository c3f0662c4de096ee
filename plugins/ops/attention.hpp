// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernel of Attention and its decomposition share.

#include <limits>

#include "dims.hpp"

namespace tenon::ops::attention {

enum Input : uint64_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };
enum Output : uint64_t { kY, kPresentKey, kPresentValue, kScores };
enum ScoresMode { kRaw, kCapped, kBiased, kProbabilities };
inline constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

// [b, heads, s, d] of a type with three axes, [b, s, heads*d], or four.
inline std::optional<Dims> heads_of(const Type& type, int64_t heads) {
  if (!type.ranked) return std::nullopt;
  Dims dims = dims_of(type);
  if (dims.size() == 4) return dims;
  if (dims.size() != 3 || heads < 1) return std::nullopt;
  return Dims{dims[0], heads, dims[1], quotient({dims[2]}, {Dim(heads)})};
}

Result<std::vector<Value>> decomposed(EditView edit, Node node);

}  // namespace tenon::ops::attention
