// SPDX-License-Identifier: Apache-2.0
// Functions over whole arrays: reductions, and what goes along an axis.
#include <algorithm>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

// Each takes x, axis, keepdims.
Values plain(Call& c) {
  return reduce(c.row.op, c[0], c.axes(1, c[0].rank()), c.flag(2));
}
Values total(Call& c) {
  return reduce(c.row.op, summed(c[0], c.dtype(3)), c.axes(1, c[0].rank()), c.flag(2));
}
Values extreme(Call& c) {
  std::vector<int64_t> axes = c.axes(1, c[0].rank());
  not_empty(c[0], axes);
  return plain(c);
}
Value variance(Call& c) {
  const Value& x = c[0];
  std::vector<int64_t> axes = c.axes(1, x.rank());
  Value distance = x - reduce("ReduceMean", x, axes, true);
  Value squares = distance * distance;
  double correction = c.json(3).get<double>();
  if (correction == 0) return reduce("ReduceMean", squares, axes, c.flag(2));
  double count = 1;
  for (int64_t axis : axes)
    count *= static_cast<double>(x.size_of(axis));
  // As NumPy and PyTorch do: of no more numbers than the correction, infinity or NaN.
  const double rest = std::max(count - correction, 0.0);
  // 16 bits may hold neither the sum nor the count.
  if (TN_DTYPE_BITS(x.dtype) == 16)
    return reduce("ReduceMean", squares, axes, c.flag(2)) * (count / rest);
  return reduce("ReduceSum", squares, axes, c.flag(2)) / rest;
}
Values index_of(Call& c) {
  Value x = c[0].is_bool() ? cast(c[0], TN_U8) : c[0];
  bool is_whole = c.json(1).is_null();
  if (is_whole) x = reshape(x, {-1});
  int64_t axis = is_whole ? 0 : c.axis(1, x.rank());
  not_empty(x, {axis});
  Value index = node(c.row.op, {x}, {{"axis", axis}, {"keepdims", c.flag(2) ? 1 : 0}});
  if (!is_whole || !c.flag(2)) return index;
  return reshape(index, std::vector<int64_t>(static_cast<size_t>(c[0].rank()), 1));
}
Values cumulative(Call& c) {
  Value x = summed(c[0]);
  int64_t axis = c.axis(1, x.rank());
  Value made = node(c.row.op, {x, c.scalar(axis, TN_I64)});
  if (!c.flag(2)) return made;
  std::vector<int64_t> start;
  for (int64_t a = 0; a < x.rank(); ++a)
    start.push_back(a == axis ? 1 : x.size_of(a));
  return concat({full(c.graph, start, c.row.op == "CumProd" ? 1 : 0, x.dtype), made}, axis);
}
Values diff(Call& c) {
  std::vector<Value> parts;
  int64_t axis = c.axis(1, c[0].rank());
  auto slice_of = [&](const Value& number) {
    std::vector<int64_t> shape;
    for (int64_t a = 0; a < c[0].rank(); ++a)
      shape.push_back(a == axis ? 1 : c[0].size_of(a));
    return broadcast_to(number, shape);
  };
  for (size_t i : {3u, 0u, 4u})  // prepend, x, append
    if (c.has(i)) parts.push_back(c[i].rank() || i == 0 ? c[i] : slice_of(c[i]));
  Value x = parts.size() > 1 ? concat(parts, axis) : parts[0];
  if (c.integer(2) < 0) invalid(cat("diff: n: expected a number from 0, got ", c.integer(2)));
  for (int64_t n = c.integer(2); n > 0; --n) {
    Value after = slice(x, axis, 1, INT64_MAX);
    Value before = slice(x, axis, 0, -1);
    x = x.is_bool() ? logical_not(eq(after, before)) : after - before;
  }
  return x;
}

const Function kRows[] = {
    {"all(x: bool, axis: axes = none, keepdims: flag = false)", "",
     "True where every element over axis is; of no elements True.", "",
     [](Call& c) -> Values {
       return reduce("ReduceMin", c[0], c.axes(1, c[0].rank()), c.flag(2));
     }},
    {"any(x: bool, axis: axes = none, keepdims: flag = false)", "",
     "True where one element over axis is; of no elements False.", "",
     [](Call& c) -> Values { return any_of(c[0], c.axes(1, c[0].rank()), c.flag(2)); }},
    {"argmax(x, axis: int = none, keepdims: flag = false)", "ArgMax",
     "The index of the largest element over axis, int64; the first of equal ones.", "", index_of},
    {"argmin(x, axis: int = none, keepdims: flag = false)", "ArgMin",
     "The index of the smallest element over axis, int64; the first of equal ones.", "", index_of},
    {"count_nonzero(x: bool, axis: axes = none, keepdims: flag = false)", "",
     "How many elements over axis are not 0, int64.", "",
     [](Call& c) -> Values {
       return reduce("ReduceSum", cast(c[0], TN_I64), c.axes(1, c[0].rank()), c.flag(2));
     }},
    {"cumulative_prod(x, axis: int = 0, include_initial: flag = false)", "CumProd",
     "Each element times all before it on axis; a 1 in front of them with include_initial.", "",
     cumulative},
    {"cumulative_sum(x, axis: int = 0, include_initial: flag = false)", "CumSum",
     "Each element with all before it on axis added; a 0 in front of them with include_initial.",
     "", cumulative},
    {"diff(x: together, axis: int = -1, n: int = 1, prepend: together = none, "
     "append: together = none)",
     "",
     "Each element less the one before it on axis, n times; the axis is n shorter. prepend, "
     "append: "
     "arrays that are put before and behind x first.",
     "", diff},
    {"logsumexp(x: float, axis: axes = none, keepdims: flag = false)", "ReduceLogSumExp",
     "log(sum(exp(x))) over axis, without overflow.", "", plain},
    {"max(x, axis: axes = none, keepdims: flag = false)", "ReduceMax",
     "The largest element over axis, of which there is one at least; of truth values any.", "",
     extreme},
    {"mean(x: float, axis: axes = none, keepdims: flag = false)", "ReduceMean",
     "The arithmetic mean over axis; float32 of integers.", "", plain},
    {"min(x, axis: axes = none, keepdims: flag = false)", "ReduceMin",
     "The smallest element over axis, of which there is one at least; of truth values all.", "",
     extreme},
    {"prod(x, axis: axes = none, keepdims: flag = false, dtype: dtype = none)", "ReduceProd",
     "The product over axis, made in the type dtype; of integers in 64 bits.", "", total},
    {"std(x: float, axis: axes = none, keepdims: flag = false, correction: scalar = 0)", "",
     "The square root of var.", "", [](Call& c) -> Values { return node("Sqrt", {variance(c)}); }},
    {"sum(x, axis: axes = none, keepdims: flag = false, dtype: dtype = none)", "ReduceSum",
     "The sum over axis, an axis, several, or none for all. Truth values are counted. dtype: the "
     "type in which it is made; 64 bits of integers.",
     "", total},
    {"var(x: float, axis: axes = none, keepdims: flag = false, correction: scalar = 0)", "",
     "The mean squared distance from the mean; the divisor is the count less correction.", "",
     [](Call& c) -> Values { return variance(c); }},
};

}  // namespace

const std::span<const Function> kReductions = kRows;

}  // namespace tenon::arrays
