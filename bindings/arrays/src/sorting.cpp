// SPDX-License-Identifier: Apache-2.0
// Order along an axis, and what is where.
#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

// Values and indices of the first k in order, equal ones by their index.
std::vector<Value> ordered(const Value& x, int64_t axis, bool descending, int64_t k) {
  if (k < 0 || k > x.size_of(axis))
    invalid(cat("k: expected one of 0 to ", x.size_of(axis), ", got ", k));
  std::vector<Value> inputs = {x.is_bool() ? cast(x, TN_U8) : x, x.graph->integers({{k}})};
  Json attributes = {{"axis", axis}, {"largest", descending ? 1 : 0}, {"sorted", 1}};
  std::vector<Value> made = x.graph->nodes("TopK", inputs, attributes, 2);
  made[0] = cast(made[0], x.dtype);
  return made;
}
std::vector<Value> all_ordered(const Call& c) {
  int64_t axis = c.axis(1, c[0].rank());
  return ordered(c[0], axis, c.flag(2), c[0].size_of(axis));
}

// Whether an element of the ordered vector lies before x. NaN lies behind all numbers, which no
// comparison says.
Value lies_before(const Value& element, const Value& x, bool is_left) {
  Value before = node(is_left ? "Less" : "LessOrEqual", {element, x});
  if (!x.is_float()) return before;
  Value behind = node("IsNaN", {x});
  if (is_left) behind = node("And", {behind, logical_not(node("IsNaN", {element}))});
  return node("Or", {before, behind});
}

// How many of the n elements lie before each of x, bit by bit from the highest: where one more bit
// still counts elements that lie before, it is set.
Value bisected(const Value& ordered, const Value& x, int64_t n, bool is_left) {
  const uint32_t dtype = n < (int64_t{1} << 30) ? TN_I32 : TN_I64;
  Graph& graph = *x.graph;
  int64_t bit = 1;
  while (bit <= n / 2)
    bit *= 2;
  Value found = graph.number(0, dtype);
  for (; bit > 0; bit /= 2) {
    Value more = found + graph.number(bit, dtype);
    Value last = node("Min", {more, graph.number(n, dtype)}) - graph.number(1, dtype);
    Value element = node("Gather", {ordered, last}, {{"axis", 0}});
    Value is_set = node("And", {lies_before(element, x, is_left),
                                node("LessOrEqual", {more, graph.number(n, dtype)})});
    found = where(is_set, more, found);
  }
  return cast(found, TN_I64);
}

// How many elements of the ordered vector lie before each of x.
Value places(const Value& ordered, const Value& x, bool is_left) {
  constexpr int64_t kFew = 16;  // are compared at once
  const bool is_known = ordered.ranked && ordered.dims[0] != TN_DIM_UNKNOWN && x.ranked;
  if (is_known && ordered.dims[0] > kFew) return bisected(ordered, x, ordered.dims[0], is_left);
  Value before = lies_before(ordered, expand_dims(x, x.rank()), is_left);
  return reduce("ReduceSum", cast(before, TN_I64), {-1}, false);
}

Values searchsorted(Call& c) {
  std::string side = c.text(2);
  if (side != "left" && side != "right")
    invalid(cat("searchsorted: side: expected 'left' or 'right', got '", side, "'"));
  if (c[0].rank() != 1) invalid(cat("searchsorted: x1: expected a vector, got ", c[0].text()));
  return places(c[0], c[1], side == "left");
}

// On the line between the two points around x; the first and last value outside of all points.
Values interp(Call& c) {  // x, xp, fp
  const Value &x = c[0], &xp = c[1], &fp = c[2];
  if (xp.rank() != 1 || xp.size_of(0) < 2)
    invalid(cat("interp: xp: expected a vector of two points at least, got ", xp.text()));
  if (fp.dims != xp.dims)
    invalid(
        cat("interp: fp: expected as many values as points, got ", fp.text(), " and ", xp.text()));
  const int64_t last = xp.size_of(0) - 1;
  auto index = [&](int64_t i) { return c.graph.number(i, TN_I64); };
  const Value found = places(xp, x, false);
  const Value upper = node("Clip", {found, index(1), index(last)});
  const Value lower = upper - index(1);
  auto at = [](const Value& points, const Value& i) {
    return node("Gather", {points, i}, {{"axis", 0}});
  };
  const Value x0 = at(xp, lower), x1 = at(xp, upper), width = x1 - x0;
  const Value y0 = at(fp, lower), y1 = at(fp, upper);
  const Value slope = (y1 - y0) / where(eq(width, 0), 1 + 0 * width, width);
  const Value forward = y0 + (x - x0) * slope;
  // Where an end is infinite: the point itself, or from the other end.
  const Value backward = where(eq(x, x0), y0, y1 + (x - x1) * slope);
  const Value made = where(node("IsNaN", {forward}), backward, forward);
  const Value first = at(fp, index(0)), end = at(fp, index(last));
  const Value inside = where(node("GreaterOrEqual", {x, at(xp, index(last))}), end, made);
  return where(lt(x, at(xp, index(0))), first, inside);
}

Values nonzero(Call& c) {
  Value indices = node("NonZero", {c[0]});
  std::vector<Value> out;
  for (int64_t axis = 0; axis < c[0].rank(); ++axis)
    out.push_back(node("Gather", {indices, c.scalar(axis, TN_I64)}, {{"axis", 0}}));
  return out;
}

// Values in order, the index of each one's first, for each element its value's, how many.
std::vector<Value> unique(const Value& x) {
  std::vector<Value> inputs = {reshape(x, {-1})};
  std::vector<Value> found = x.graph->nodes("Unique", inputs, {{"sorted", 1}}, 4);
  found[2] = reshape(found[2], x.dims);
  return found;
}

const Function kRows[] = {
    {"argsort(x, axis: int = -1, descending: flag = false, stable: flag = true)", "",
     "The indices that sort along axis, int64; the sort is stable.", "",
     [](Call& c) -> Values { return all_ordered(c)[1]; }},
    {"interp(x: together float, xp: together float, fp: together float)", "",
     "The piecewise linear function through the points (xp, fp), xp in increasing order, at x; "
     "outside of them the first or the last value.",
     "", interp},
    {"nonzero(x) -> tuple", "",
     "The indices of all elements that are not 0: for each axis one vector, int64.", "", nonzero},
    {"searchsorted(x1: together number, x2: together number, side: text = \"left\")", "",
     "For each element of x2 the index in the ordered vector x1 where it belongs, int64: before "
     "equal ones, or behind them with side=\"right\"; NaN lies behind all numbers.",
     "", searchsorted},
    {"sort(x, axis: int = -1, descending: flag = false, stable: flag = true)", "",
     "The elements in order along axis; equal ones always keep theirs.", "",
     [](Call& c) -> Values { return all_ordered(c)[0]; }},
    {"top_k(x, k: int, axis: int = -1, largest: flag = true) -> values, indices", "",
     "The k largest (or smallest) elements along axis, in order, and their indices.", "",
     [](Call& c) -> Values {
       return ordered(c[0], c.axis(2, c[0].rank()), c.flag(3), c.integer(1));
     }},
    {"unique_all(x) -> values, indices, inverse_indices, counts", "",
     "The values of x in order (NaN counts as one); the index of the first of each, x as one "
     "vector; which value each element of x is; how often each occurs.",
     "", [](Call& c) -> Values { return unique(c[0]); }},
    {"unique_counts(x) -> values, counts", "",
     "The values of x in order, and how often each occurs.", "",
     [](Call& c) -> Values {
       std::vector<Value> found = unique(c[0]);
       return std::vector<Value>{found[0], found[3]};
     }},
    {"unique_inverse(x) -> values, inverse_indices", "",
     "The values of x in order, and which of them each element of x is.", "",
     [](Call& c) -> Values {
       std::vector<Value> found = unique(c[0]);
       return std::vector<Value>{found[0], found[2]};
     }},
    {"unique_values(x)", "",
     "The values of x in order, each once; NaN counts as one value, as in ONNX.", "",
     [](Call& c) -> Values { return unique(c[0])[0]; }},
};

}  // namespace

const std::span<const Function> kSorting = kRows;

}  // namespace tenon::arrays
