// SPDX-License-Identifier: Apache-2.0
// Order statistics and counts.
#include <algorithm>
#include <limits>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

// The reduced axes as one, the last.
Value gathered(const Value& x, const std::vector<int64_t>& axes) {
  std::vector<int64_t> order, sizes;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    order.push_back(axis);
    sizes.push_back(x.size_of(axis));
  }
  order.insert(order.end(), axes.begin(), axes.end());
  sizes.push_back(1);
  for (int64_t axis : axes)
    sizes.back() *= x.size_of(axis);
  if (sizes.back() == 0) invalid(cat(x.text(), ": expected one element at least"));
  return reshape(permute(x, order), sizes);
}

Value sorted(const Value& x) {
  const int64_t n = x.size_of(x.rank() - 1);
  return x.graph->nodes("TopK", std::vector<Value>{x, x.graph->integers({{n}})},
                        {{"axis", -1}, {"largest", 0}, {"sorted", 1}}, 2)[0];
}

Value taken(const Value& x, const Value& index) {
  return node("Gather", {x, index}, {{"axis", -1}});
}

// Between two elements in order, linearly; NaN where there is one. q: a number or a vector, whose
// results come first.
Value quantile(Call& c, const Value& q, const std::vector<int64_t>& axes, bool keeps) {
  const Value x = sorted(gathered(c[0], axes));
  const int64_t last = x.size_of(x.rank() - 1) - 1;
  auto number = [&](double value, uint32_t dtype) { return c.graph.number(value, dtype); };
  const Value at = q * number(static_cast<double>(last), TN_F64);
  const Value low = node("Floor", {at});
  const Value lower = cast(low, TN_I64);
  const Value upper =
      node("Min", {lower + c.graph.number(1, TN_I64), c.graph.number(last, TN_I64)});
  const Value from = taken(x, lower), to = taken(x, upper);
  Value made = from + (to - from) * cast(at - low, x.dtype);
  Value largest = taken(x, c.graph.number(last, TN_I64));
  if (q.rank() == 1) largest = expand_dims(largest, largest.rank());
  made = where(node("IsNaN", {largest}), number(std::numeric_limits<double>::quiet_NaN(), x.dtype),
               made);
  if (q.rank() == 1) {
    std::vector<int64_t> order = {made.rank() - 1};
    for (int64_t axis = 0; axis + 1 < made.rank(); ++axis)
      order.push_back(axis);
    made = permute(made, order);
  }
  for (int64_t axis : keeps ? axes : std::vector<int64_t>{})
    made = expand_dims(made, axis + q.rank());
  return made;
}

std::vector<int64_t> in_order(std::vector<int64_t> axes) {
  std::sort(axes.begin(), axes.end());
  return axes;
}

Values quantiles(Call& c) {  // x, q, axis, keepdims
  const bool is_number = c.json(1).is_number();
  if (is_number && !(c.json(1) >= 0 && c.json(1) <= 1))
    invalid(cat("quantile: q: expected a number from 0 to 1, got ", cxx::dump(c.json(1))));
  const Value q = is_number ? c.graph.number(c.json(1), TN_F64) : cast(c[1], TN_F64);
  if (q.rank() > 1) invalid(cat("quantile: q: expected a number or a vector, got ", q.text()));
  return quantile(c, q, in_order(c.axes(2, c[0].rank())), c.flag(3));
}

Values median(Call& c) {  // x, axis, keepdims
  return quantile(c, c.graph.number(0.5, TN_F64), in_order(c.axes(1, c[0].rank())), c.flag(2));
}

// A negative number would count from the end: it becomes one behind it, which is refused.
Values bincount(Call& c) {  // x, length, weights
  const int64_t length = c.integer(1);
  if (length < 0) invalid(cat("bincount: length: expected a number from 0, got ", length));
  const Value x = cast(c[0], TN_I64);
  const Value at = reshape(where(lt(x, 0), c.graph.number(length, TN_I64), x), {-1});
  const Value weights = c.has(2) ? c[2] : c.graph.number(1, TN_I64);
  const Value counted = node("Expand", {reshape(weights, {-1}), node("Shape", {at})});
  return node("ScatterElements", {full(c.graph, {length}, 0, counted.dtype), at, counted},
              {{"axis", 0}, {"reduction", "add"}});
}

const Function kRows[] = {
    {"bincount(x: whole, length: int, weights: number = none)", "",
     "How often each of 0 to length - 1 is in x, int64; with weights (of the shape of x) their "
     "sums. "
     "Other numbers in x are an error when the function runs.",
     "", bincount},
    {"median(x: float, axis: axes = none, keepdims: flag = false)", "",
     "The middle element in order, or the mean of the two in the middle; NaN where there is one.",
     "", median},
    {"quantile(x: float, q, axis: axes = none, keepdims: flag = false)", "",
     "The value below which the fraction q of the elements lies, linear between two elements; NaN "
     "where there is one. The results of a vector q are on a new first axis.",
     "", quantiles},
};

}  // namespace

const std::span<const Function> kStatistics = kRows;

}  // namespace tenon::arrays
