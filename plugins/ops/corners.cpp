// SPDX-License-Identifier: Apache-2.0
#include "corners.hpp"

namespace tenon::ops {

Value pick(Builder& b, Value planes, Value at) {
  Type all = b.fixed(planes, "planes"), places = b.fixed(at, "places");
  if (!all.ranked || !places.ranked) return {};  // the builder has failed
  Value wide = b.ints({all.dims[0], all.dims[1], places.dims[1]});
  Value index = b.op("Expand", {b.op("Unsqueeze", {at, b.ints({1})}), wide});
  return b.op("GatherElements", {planes, index}, {{"axis", 2}});
}

std::vector<Value> weighted_corners(Builder& b,
                                    Value planes,
                                    const std::vector<Line>& rows,
                                    const std::vector<Line>& columns,
                                    int64_t width) {
  std::vector<Value> out;
  Value middle = b.ints({1});
  for (const Line& row : rows) {
    for (const Line& column : columns) {
      Value line = b.mul(b.cast(row.at, TN_I64), b.number(static_cast<double>(width), TN_I64));
      Value taken = pick(b, planes, b.add(line, b.cast(column.at, TN_I64)));
      Value share = b.mul(row.share, column.share);
      out.push_back(b.mul(taken, b.op("Unsqueeze", {share, middle})));
    }
  }
  return out;
}

Value between_corners(Builder& b,
                      Value planes,
                      const std::vector<Line>& rows,
                      const std::vector<Line>& columns,
                      int64_t width) {
  Value sum;
  for (Value corner : weighted_corners(b, planes, rows, columns, width))
    sum = sum ? b.add(sum, corner) : corner;
  return sum;
}

}  // namespace tenon::ops
