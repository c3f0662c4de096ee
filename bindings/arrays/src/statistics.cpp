// SPDX-License-Identifier: Apache-2.0
// Order statistics and counts.
#include <algorithm>
#include <cmath>
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

// The first k of the last axis, from below or from above; in order, or as they come.
Value first(const Value& x, int64_t k, bool from_above, bool in_order) {
  const Json attributes = {
      {"axis", -1}, {"largest", from_above ? 1 : 0}, {"sorted", in_order ? 1 : 0}};
  return x.graph->nodes("TopK", std::vector<Value>{x, x.graph->integers({{k}})}, attributes, 2)[0];
}

Value taken(const Value& x, const Value& index) {
  return node("Gather", {x, index}, {{"axis", -1}});
}

// Two elements that are next to each other in order, and how far behind the first one the wanted
// point between them is, as a part of their distance.
struct Between {
  Value from, to, part;
};

// Only the side of the nearer end is looked at, and there only the innermost two are put in order.
Between selected(const Value& x, double q) {
  const int64_t n = x.size_of(x.rank() - 1);
  const double at = q * static_cast<double>(n - 1);
  const auto lower = static_cast<int64_t>(std::floor(at));
  const int64_t upper = std::min(lower + 1, n - 1);
  const bool from_above = n - lower < upper + 1;
  const int64_t side = from_above ? n - lower : upper + 1;
  const Value innermost =
      first(first(x, side, from_above, false), std::min<int64_t>(2, side), !from_above, true);
  const Value outer = taken(innermost, x.graph->number(upper > lower ? 1 : 0, TN_I64));
  const Value inner = taken(innermost, x.graph->number(0, TN_I64));
  const Value part = x.graph->number(at - static_cast<double>(lower), x.dtype);
  return from_above ? Between{inner, outer, part} : Between{outer, inner, part};
}

Between ordered(const Value& all, const Value& q) {
  const int64_t n = all.size_of(all.rank() - 1), last = n - 1;
  const Value x = first(all, n, false, true);
  auto number = [&](double value, uint32_t dtype) { return x.graph->number(value, dtype); };
  const Value at = q * number(static_cast<double>(last), TN_F64);
  const Value low = node("Floor", {at});
  // Behind the last element, which is refused, where q is none of 0 to 1.
  const Value is_inside = node("And", {node("GreaterOrEqual", {q, number(0, TN_F64)}),
                                       node("LessOrEqual", {q, number(1, TN_F64)})});
  const Value lower = cast(where(is_inside, low, static_cast<double>(n)), TN_I64);
  const Value upper =
      node("Min", {lower + x.graph->number(1, TN_I64), x.graph->number(last, TN_I64)});
  return {taken(x, lower), taken(x, upper), cast(at - low, x.dtype)};
}

// Linearly. Where one end is infinite, or the two are too far apart, their distance is infinite or
// none: then each end counts by its share, and the second one not at all where it has none.
Value point_of(const Between& found) {
  const auto& [from, to, part] = found;
  const Value distance = to - from, line = from + distance * part;
  const Value by_shares = from * (Operand(1) - part) + to * part;
  const Value is_from = node("Or", {eq(from, to), eq(part, 0)});
  const Value is_infinite = node("Or", {node("IsInf", {from}), node("IsInf", {distance})});
  return where(is_infinite, where(is_from, from, by_shares), line);
}

// Between two elements in order; NaN where there is one. of_vector: the results of each q
// are on a last axis, which comes first.
Value quantile(const Value& x,
               const Between& found,
               bool of_vector,
               const std::vector<int64_t>& axes,
               bool keeps) {
  Value made = point_of(found);
  const Value has_nan = node("IsNaN", {reduce("ReduceMax", x, {x.rank() - 1}, of_vector)});
  made = where(has_nan, x.graph->number(std::numeric_limits<double>::quiet_NaN(), x.dtype), made);
  if (of_vector) {
    std::vector<int64_t> order = {made.rank() - 1};
    for (int64_t axis = 0; axis + 1 < made.rank(); ++axis)
      order.push_back(axis);
    made = permute(made, order);
  }
  for (int64_t axis : keeps ? axes : std::vector<int64_t>{})
    made = expand_dims(made, axis + (of_vector ? 1 : 0));
  return made;
}

std::vector<int64_t> in_order(std::vector<int64_t> axes) {
  std::sort(axes.begin(), axes.end());
  return axes;
}

Values quantiles(Call& c) {  // x, q, axis, keepdims
  const std::vector<int64_t> axes = in_order(c.axes(2, c[0].rank()));
  const Value x = gathered(c[0], axes);
  if (!c.json(1).is_number()) {
    const Value q = cast(c[1], TN_F64);
    if (q.rank() > 1) invalid(cat("quantile: q: expected a number or a vector, got ", q.text()));
    return quantile(x, ordered(x, q), q.rank() == 1, axes, c.flag(3));
  }
  const double q = c.json(1);
  if (!(q >= 0 && q <= 1))
    invalid(cat("quantile: q: expected a number from 0 to 1, got ", cxx::dump(c.json(1))));
  return quantile(x, selected(x, q), false, axes, c.flag(3));
}

Values median(Call& c) {  // x, axis, keepdims
  const std::vector<int64_t> axes = in_order(c.axes(1, c[0].rank()));
  const Value x = gathered(c[0], axes);
  return quantile(x, selected(x, 0.5), false, axes, c.flag(2));
}

// A negative number would count from the end: it becomes one behind it, which is refused.
Values bincount(Call& c) {  // x, length, weights
  const int64_t length = c.integer(1);
  if (length < 0) invalid(cat("bincount: length: expected a number from 0, got ", length));
  const Value x = cast(c[0], TN_I64);
  const Value at = reshape(where(lt(x, 0), c.graph.number(length, TN_I64), x), {-1});
  const Value weights = summed(c.has(2) ? c[2] : c.graph.number(1, TN_I64), TN_DTYPE_NONE);
  const bool is_half = weights.is_float() && TN_DTYPE_BITS(weights.dtype) == 16;
  const Value wide = is_half ? cast(weights, TN_F32) : weights;
  const Value counted = node("Expand", {reshape(wide, {-1}), node("Shape", {at})});
  const Value sums =
      node("ScatterElements", {full(c.graph, {length}, 0, counted.dtype), at, counted},
           {{"axis", 0}, {"reduction", "add"}});
  return cast(sums, weights.dtype);
}

const Function kRows[] = {
    {"bincount(x: whole, length: int, weights: number = none)", "",
     "How often each of 0 to length - 1 is in x, int64; with weights (of the shape of x) their "
     "sums, of integers in 64 bits. Other numbers in x are an error when the function runs.",
     "", bincount},
    {"median(x: float, axis: axes = none, keepdims: flag = false)", "",
     "The middle element in order, or the mean of the two in the middle; NaN where there is one.",
     "", median},
    {"quantile(x: float, q, axis: axes = none, keepdims: flag = false)", "",
     "The value below which the fraction q of the elements lies, linear between two elements; NaN "
     "where there is one. The results of a vector q are on a new first axis; a q outside of 0 to 1 "
     "is an error when the function runs.",
     "", quantiles},
};

}  // namespace

const std::span<const Function> kStatistics = kRows;

}  // namespace tenon::arrays
