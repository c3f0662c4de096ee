// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading between pixels with operators: what the compositions of sampling operators share.

#include "tenon/sdk/build.hpp"

namespace tenon::ops {

// One of the two lines of pixels around a place on an axis, and its share of the value there.
struct Line {
  Value at;  // integers of the float type of the place, on the axis
  Value share;
};

// planes [n, c, pixels] read at the flat places `at` [n, points], int64: [n, c, points].
Value pick(Builder& b, Value planes, Value at);

// Sums what is read at the four corners that two lines of rows and two of columns make, each with
// its share: planes [n, c, rows * columns], lines [n, points]; the result is [n, c, points].
Value between_corners(Builder& b,
                      Value planes,
                      const std::vector<Line>& rows,
                      const std::vector<Line>& columns,
                      int64_t width);
// The corners by themselves, weighted.
std::vector<Value> weighted_corners(Builder& b,
                                    Value planes,
                                    const std::vector<Line>& rows,
                                    const std::vector<Line>& columns,
                                    int64_t width);

}  // namespace tenon::ops
