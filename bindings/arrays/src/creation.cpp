// SPDX-License-Identifier: Apache-2.0
// New arrays: of one number, of a shape, of a range, triangles, random numbers.
#include <cmath>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

constexpr const char* kZero = "0";

uint32_t dtype_for(const Call& c, size_t i, const Json& number) {
  return c.dtype(i, with_number(TN_DTYPE_NONE, number));
}
Values filled(Call& c) {  // shape, dtype; the row's op is the number
  return full(c.graph, c.ints(0), c.row.op == kZero ? 0 : 1, c.dtype(1));
}
Value like(const Call& c, const Json& number, size_t dtype) {
  Value filling = c.scalar(number, c.dtype(dtype, c[0].dtype));
  return node("Expand", {filling, node("Shape", {c[0]})});
}
Values filled_like(Call& c) {
  return like(c, c.row.op == kZero ? 0 : 1, 1);
}

// first + i*step, whole where both are.
std::vector<Json> sequence(const Json& first, const Json& step, int64_t count) {
  bool whole = is_whole(first) && is_whole(step);
  std::vector<Json> elements;
  for (int64_t i = 0; i < count; ++i) {
    if (whole) {
      elements.push_back(first.get<int64_t>() + i * step.get<int64_t>());
    } else {
      elements.push_back(first.get<double>() + static_cast<double>(i) * step.get<double>());
    }
  }
  return elements;
}
// How many elements a constant of the graph has, which is made when the function is traced.
int64_t counted(std::string_view function, double count) {
  if (count < 0) invalid(cat(function, ": expected a size of 0 or more, got ", count));
  if (!(count <= 0x1p28)) invalid(cat(function, ": expected fewer elements, got ", count));
  return static_cast<int64_t>(count);
}
// How many whole numbers there are from first up or down to last, by steps: a double does not hold
// all of 64 bits.
double whole_count(int64_t first, int64_t last, int64_t step) {
  if (step > 0 ? last <= first : last >= first) return 0;
  const bool rises = step > 0;
  const uint64_t low = static_cast<uint64_t>(rises ? first : last),
                 high = static_cast<uint64_t>(rises ? last : first),
                 by = rises ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return static_cast<double>((high - low - 1) / by + 1);
}
Values arange(Call& c) {
  Json first = c.json(1).is_null() ? Json(0) : c.json(0);
  Json last = c.json(1).is_null() ? c.json(0) : c.json(1);
  Json step = c.json(2);
  if (step == 0) invalid("arange: step: expected a number other than 0");
  const bool whole = is_whole(first) && is_whole(last) && is_whole(step);
  const double count =
      whole ? whole_count(first, last, step)
            : std::ceil((last.get<double>() - first.get<double>()) / step.get<double>());
  const int64_t n = counted("arange", count < 0 ? 0 : count);
  return c.graph.constant(c.dtype(3, whole ? TN_I64 : TN_F32), {n}, sequence(first, step, n));
}
Values linspace(Call& c) {
  double start = c.json(0).get<double>();
  int64_t count = counted("linspace", static_cast<double>(c.integer(2)));
  int64_t steps = c.flag(4) ? count - 1 : count;
  double step = steps > 0 ? (c.json(1).get<double>() - start) / static_cast<double>(steps) : 0;
  std::vector<Json> elements = sequence(start, step, count);
  if (steps > 0 && c.flag(4)) elements.back() = c.json(1).get<double>();  // not rounded on the way
  return c.graph.constant(c.dtype(3), {count}, elements);
}
Values eye(Call& c) {
  int64_t rows = c.integer(0);
  int64_t columns = c.json(1).is_null() ? rows : c.integer(1);
  if (rows < 0 || columns < 0)
    invalid(cat("eye: expected sizes of 0 or more, got ", rows, " and ", columns));
  const int64_t n = counted("eye", static_cast<double>(rows) * static_cast<double>(columns));
  std::vector<Json> elements;
  for (int64_t i = 0; i < n; ++i)
    elements.push_back(i % columns - i / columns == c.integer(2) ? 1 : 0);
  return c.graph.constant(c.dtype(3), {rows, columns}, elements);
}
Values meshgrid(Call& c) {
  std::string indexing = c.text(1);
  if (indexing != "xy" && indexing != "ij")
    invalid(cat("meshgrid: indexing: expected 'xy' or 'ij', got '", indexing, "'"));
  std::vector<Value> wide = c.list(0);
  for (size_t i = 0; i < wide.size(); ++i) {
    std::vector<int64_t> shape(wide.size(), 1);
    bool swapped = indexing == "xy" && wide.size() > 1 && i < 2;
    shape[swapped ? 1 - i : i] = -1;
    wide[i] = reshape(wide[i], shape);
  }
  return broadcast_together(wide);
}
Values triangle(Call& c) {
  return node("Trilu", {c[0], c.scalar(c.integer(1), TN_I64)},
              {{"upper", c.row.op == "triu" ? 1 : 0}});
}

// Random numbers. The numbers are a function of the graph or, where one is given, of `key`: one or
// two integers, the seed and the stream. They are the same on every backend.
Value keyed(const Call& c, const char* kind, const Value& shape, Value key, uint32_t dtype) {
  key = cast(key, TN_I64);
  if (key.rank() == 0) key = expand_dims(key, 0);
  std::vector<Value> inputs = {shape, key};
  Json attributes = {{"kind", kind}, {"dtype", {{"dtype", dtype}}}};
  return c.graph.nodes("Random", inputs, attributes, 1, "tenon").front();
}
Values drawn(Call& c) {  // shape, key, dtype
  uint32_t dtype = c.dtype(2);
  std::vector<int64_t> shape = c.ints(0);
  if (c.has(1))
    return keyed(c, c.row.op == "RandomNormal" ? "normal" : "uniform", c.graph.integers(shape),
                 c[1], dtype);
  Json attributes = {{"shape", shape}, {"dtype", {{"dtype", dtype}}}};
  return c.graph.nodes(c.row.op, {}, attributes);
}
Values dropout(Call& c) {  // x, ratio, key
  double ratio = c.json(1).get<double>();
  if (!(ratio >= 0 && ratio < 1))
    invalid(cat("dropout: ratio: expected a number in 0..1, 1 excluded, got ", ratio));
  Value bound = c.scalar(ratio, TN_F32);
  if (!c.has(2)) return node("Dropout", {c[0], bound, c.scalar(true, TN_BOOL)});
  Value numbers = keyed(c, "uniform", node("Shape", {c[0]}), c[2], TN_F32);
  Value kept = node("GreaterOrEqual", {numbers, bound});
  return where(kept, c[0] * (1 / (1 - ratio)), 0);
}

const Function kRows[] = {
    {"arange(start: scalar, stop: scalar = none, step: scalar = 1, dtype: dtype = none)", "",
     "start, start + step, ... below stop; from 0 with one argument.", "", arange},
    {"asarray(x, dtype: dtype = none)", "",
     "x, a number, an array or a list of numbers, as an array; float32 of floats.", "",
     [](Call& c) -> Values { return cast(c[0], c.dtype(1, c[0].dtype)); }},
    {"dropout(x: float, ratio: scalar = 0.5, key: whole = none)", "",
     "x with each element set to 0 with the probability ratio, and the others divided by 1 - "
     "ratio. "
     "Only for training: where there is nothing to drop, do not call it. key: one or two integers, "
     "the seed and the stream; without it each call of a compiled function drops the same.",
     "", dropout},
    {"empty(shape: ints, dtype: dtype = \"float32\")", kZero,
     "An array of this shape; its elements are not to be relied on.", "", filled},
    {"empty_like(x, dtype: dtype = none)", kZero,
     "An array of the shape of x; its elements are not to be relied on.", "", filled_like},
    {"eye(rows: int, columns: int = none, k: int = 0, dtype: dtype = \"float32\")", "",
     "A matrix with ones on diagonal k, which lies above the main one where k is positive.", "",
     eye},
    {"from_dlpack(x)", "",
     "The array of another library; every function takes such arrays as they are, too.", "",
     [](Call& c) -> Values { return c[0]; }},
    {"full(shape: ints, fill_value: scalar, dtype: dtype = none)", "",
     "An array of this shape, filled with one number; float32 of a float unless dtype says else.",
     "",
     [](Call& c) -> Values {
       return full(c.graph, c.ints(0), c.json(1), dtype_for(c, 2, c.json(1)));
     }},
    {"full_like(x, fill_value: scalar, dtype: dtype = none)", "",
     "An array of the shape of x, symbolic sizes too, filled with one number.", "",
     [](Call& c) -> Values { return like(c, c.json(1), 2); }},
    {"linspace(start: scalar, stop: scalar, num: int, dtype: dtype = \"float32\", "
     "endpoint: flag = true)",
     "", "num numbers from start to stop at equal distances; stop is one of them with endpoint.",
     "", linspace},
    {"meshgrid(*arrays, indexing: text = \"xy\") -> tuple", "",
     "Vectors as the coordinates of a grid: \"xy\" has the second one's axis first, \"ij\" the "
     "first "
     "one's.",
     "", meshgrid},
    {"ones(shape: ints, dtype: dtype = \"float32\")", "1", "An array of ones.", "", filled},
    {"ones_like(x, dtype: dtype = none)", "1", "An array of ones of the shape of x.", "",
     filled_like},
    {"random_normal(shape: ints, key: whole = none, dtype: dtype = \"float32\")", "RandomNormal",
     "Numbers of the normal distribution: mean 0, deviation 1. key: one or two integers, the seed "
     "and the stream; without it each call of a compiled function gives the same numbers.",
     "", drawn},
    {"random_uniform(shape: ints, key: whole = none, dtype: dtype = \"float32\")", "RandomUniform",
     "Numbers of [0, 1), each as likely as the others. key: as for random_normal.", "", drawn},
    {"tril(x, k: int = 0)", "tril",
     "The lower triangle of the last two axes; above diagonal k there are zeros.", "", triangle},
    {"triu(x, k: int = 0)", "triu",
     "The upper triangle of the last two axes; below diagonal k there are zeros.", "", triangle},
    {"zeros(shape: ints, dtype: dtype = \"float32\")", kZero, "An array of zeros.", "", filled},
    {"zeros_like(x, dtype: dtype = none)", kZero, "An array of zeros of the shape of x.", "",
     filled_like},
};

}  // namespace

const std::span<const Function> kCreation = kRows;

}  // namespace tenon::arrays
