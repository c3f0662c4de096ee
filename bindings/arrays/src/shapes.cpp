// SPDX-License-Identifier: Apache-2.0
// Functions that move elements and change none.
#include <algorithm>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

// The size that x has at axis i, for a dim that names it.
void check_kept(const Value& x, size_t i, const Json& dim, const Json& dims) {
  bool is_there = i < x.dims.size() && x.dims[i] < 0;
  if (!is_there || (dim.is_string() && dim != x.symbols[i]))
    invalid(cat("reshape: shape: expected one symbolic size or -1, and others where ", x.text(),
                " has them, got ", cxx::dump(dims)));
}

// Sizes for Reshape. A symbolic size is what is left over, or, where that is taken or there are
// several, the size that x has at this axis: ONNX's 0. Where all sizes of x are known, no text is
// one.
Values reshaped(Call& c) {
  const Value& x = c[0];
  Json dims = c.json(1).is_array() ? c.json(1) : Json::array({c.json(1)});
  if (c.json(1).is_object() && c.json(1).empty()) dims = Json::array();  // an empty table of Lua
  const bool is_known = x.ranked && std::ranges::all_of(x.dims, [](int64_t n) { return n >= 0; });
  auto is_symbol = [&](const Json& dim) { return (dim.is_string() && !is_known) || dim.is_null(); };
  int64_t symbols = std::count_if(dims.begin(), dims.end(), is_symbol);
  bool has_rest = std::find(dims.begin(), dims.end(), Json(-1)) != dims.end();
  bool keeps = symbols > 1 || (symbols == 1 && has_rest);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Json& dim = dims[i];
    if (!is_symbol(dim)) {
      if (!is_whole(dim))
        invalid(cat("reshape: shape: expected whole numbers, got ", cxx::dump(dim)));
      sizes.push_back(dim.get<int64_t>());
    } else if (keeps) {
      check_kept(x, i, dim, dims);
      sizes.push_back(0);
    } else {
      sizes.push_back(-1);
    }
  }
  return node("Reshape", {x, c.graph.integers(sizes)}, {{"allowzero", keeps ? 0 : 1}});
}

Values moveaxis(Call& c) {
  int64_t rank = c[0].rank();
  std::vector<int64_t> sources = c.axes(1, rank);
  std::vector<int64_t> targets = c.axes(2, rank);
  if (sources.size() != targets.size())
    invalid(cat("moveaxis: destination: expected ", sources.size(), " axes, got ", targets.size()));
  std::vector<int64_t> order(static_cast<size_t>(rank), -1);
  for (size_t i = 0; i < sources.size(); ++i)
    order[static_cast<size_t>(targets[i])] = sources[i];
  int64_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::find(sources.begin(), sources.end(), next) != sources.end())
      ++next;
    axis = next++;
  }
  return permute(c[0], order);
}

Values permuted(Call& c) {
  const std::vector<int64_t> order = c.axes(1, c[0].rank());
  if (std::ssize(order) != c[0].rank())
    invalid(cat("permute_dims: axes: expected each of ", c[0].rank(), " axes, got ",
                cxx::dump(c.json(1))));
  return permute(c[0], order);
}

Values matrix_transpose(Call& c) {
  int64_t rank = c[0].rank();
  if (rank < 2) invalid(cat("expected at least two axes, got ", c[0].text()));
  std::vector<int64_t> order;
  for (int64_t a = 0; a < rank; ++a)
    order.push_back(a);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(c[0], order);
}

Values transpose(Call& c) {
  std::vector<int64_t> order;
  for (int64_t a = c[0].rank(); a > 0; --a)
    order.push_back(a - 1);
  return permute(c[0], order);
}

// The operator would give a shape that is wider than the one that is asked for.
Values repeated(Call& c) {
  const Value& x = c[0];
  const std::vector<int64_t> shape = c.ints(1);
  bool fits = x.dims.size() <= shape.size();
  for (size_t k = 0; fits && k < x.dims.size(); ++k) {
    const int64_t own = x.dims[x.dims.size() - 1 - k];
    fits = own < 0 || own == 1 || own == shape[shape.size() - 1 - k];
  }
  if (!fits)
    invalid(cat("broadcast_to: shape: expected one that ", x.text(), " can be repeated to, got ",
                cxx::shape_text(shape)));
  return broadcast_to(x, shape);
}

Values squeezed(Call& c) {
  std::vector<int64_t> axes;
  for (int64_t a : c.axes(1, c[0].rank())) {
    if (!c.json(1).is_null() || c[0].dims[static_cast<size_t>(a)] == 1) axes.push_back(a);
  }
  return squeeze(c[0], axes);
}

Values concatenated(Call& c) {
  std::vector<Value> parts = alike(c.list(0));
  if (parts.empty()) invalid("concat: arrays: expected one at least");
  if (!c.json(1).is_null()) return concat(parts, c.axis(1, parts[0].rank()));
  for (Value& part : parts)
    part = reshape(part, {-1});
  return concat(parts, 0);
}

Values stack(Call& c) {
  std::vector<Value> parts = alike(c.list(0));
  if (parts.empty()) invalid("stack: arrays: expected one at least");
  bool differ = std::any_of(parts.begin(), parts.end(),
                            [&](const Value& x) { return x.dims != parts[0].dims; });
  if (differ) parts = broadcast_together(parts);
  int64_t axis = c.axis(1, parts[0].rank() + 1);
  for (Value& part : parts)
    part = expand_dims(part, axis);
  return concat(parts, axis);
}

std::vector<Value> split(const Value& x, int64_t parts, int64_t axis) {
  int64_t size = x.size_of(axis);
  if (parts < 1 || size % parts)
    invalid(cat("parts: expected a divisor of ", size, ", got ", parts));
  if (parts == 1) return {x};
  std::vector<int64_t> each(static_cast<size_t>(parts), size / parts);
  std::vector<Value> inputs = {x, x.graph->integers(each)};
  return x.graph->nodes("Split", inputs, {{"axis", axis}}, static_cast<uint64_t>(parts));
}

Values unstack(Call& c) {
  int64_t axis = c.axis(1, c[0].rank());
  std::vector<Value> parts;
  if (c[0].size_of(axis))
    for (const Value& part : split(c[0], c[0].size_of(axis), axis))
      parts.push_back(squeeze(part, {axis}));
  return parts;
}

Values roll(Call& c) {
  Value x = c[0];
  bool is_whole = c.json(2).is_null();
  if (is_whole) x = reshape(x, {-1});
  std::vector<int64_t> axes = is_whole ? std::vector<int64_t>{0} : c.axes_in_turn(2, x.rank());
  std::vector<int64_t> shifts = c.ints(1);
  if (c.json(1).is_number()) shifts.resize(axes.size(), shifts[0]);
  if (shifts.size() != axes.size())
    invalid(cat("roll: shift: expected ", axes.size(), " numbers, got ", shifts.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t size = std::max<int64_t>(x.size_of(axes[i]), 1);
    int64_t by = (shifts[i] % size + size) % size;
    if (by) x = concat({slice(x, axes[i], -by, INT64_MAX), slice(x, axes[i], 0, -by)}, axes[i]);
  }
  return is_whole ? reshape(x, c[0].dims) : x;
}

Values repeat(Call& c) {
  bool is_whole = c.json(2).is_null();
  Value x = is_whole ? reshape(c[0], {-1}) : c[0];
  int64_t axis = is_whole ? 0 : c.axis(2, x.rank());
  int64_t size = x.size_of(axis);
  std::vector<int64_t> times = c.ints(1);
  if (times.size() == 1) times.resize(static_cast<size_t>(size), times[0]);
  if (static_cast<int64_t>(times.size()) != size)
    invalid(cat("repeat: repeats: expected ", size, " numbers, got ", times.size()));
  if (std::ranges::any_of(times, [](int64_t n) { return n < 0; }))
    invalid(cat("repeat: repeats: expected numbers from 0, got ", cxx::dump(c.json(1))));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < size; ++i)
    order.insert(order.end(), static_cast<size_t>(times[static_cast<size_t>(i)]), i);
  return node("Gather", {x, c.graph.integers(order)}, {{"axis", axis}});
}

Values flip(Call& c) {
  std::vector<int64_t> axes = c.axes(1, c[0].rank());
  if (axes.empty()) return c[0];
  auto all = [&](int64_t x) { return c.graph.integers(std::vector<int64_t>(axes.size(), x)); };
  return node("Slice", {c[0], all(-1), all(-INT64_MAX), c.graph.integers(axes), all(-1)});
}

// What one entry of pad_width says: as many on both sides, or before and behind.
std::pair<int64_t, int64_t> width_of(const Json& entry) {
  if (is_whole(entry)) return {entry, entry};
  const bool is_pair =
      entry.is_array() && entry.size() == 2 && is_whole(entry[0]) && is_whole(entry[1]);
  if (!is_pair)
    invalid(cat("pad: pad_width: expected a whole number or two of them, got ", cxx::dump(entry)));
  return {entry[0], entry[1]};
}

Values pad(Call& c) {  // x, pad_width, mode, constant_values
  const Json& widths = c.json(1);
  const std::string mode = c.text(2);
  constexpr const char* kModes[] = {"constant", "edge", "reflect", "wrap"};
  if (std::find(std::begin(kModes), std::end(kModes), mode) == std::end(kModes))
    invalid(cat("pad: mode: expected 'constant', 'edge', 'reflect' or 'wrap', got '", mode, "'"));
  const bool is_each = widths.is_array() && !widths.empty() && widths[0].is_array();
  const auto rank = static_cast<size_t>(c[0].rank());
  if (is_each && widths.size() != rank && widths.size() != 1)
    invalid(cat("pad: pad_width: expected a pair for each of ", rank, " axes, got ",
                cxx::dump(widths)));
  std::vector<int64_t> pads(2 * rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    auto [before, behind] = width_of(!is_each             ? widths
                                     : widths.size() == 1 ? widths[0]
                                                          : widths[axis]);
    if (before < 0 || behind < 0)
      invalid(cat("pad: pad_width: expected numbers from 0, got ", cxx::dump(widths)));
    pads[axis] = before;
    pads[rank + axis] = behind;
  }
  std::vector<Value> inputs = {c[0], c.graph.integers(pads)};
  if (mode == "constant") inputs.push_back(c.scalar(c.json(3), c[0].dtype));
  return c.graph.nodes("Pad", inputs, {{"mode", mode}});
}

// x with the sizes that other has where x has 1, but at this axis.
Value repeated_like(const Value& x, const Value& other, int64_t axis) {
  std::vector<int64_t> shape(x.dims.size(), 1);
  for (size_t a = 0; a < shape.size(); ++a) {
    const int64_t own = x.dims[a], beside = other.dims[a];
    if (static_cast<int64_t>(a) == axis || own == beside || own < 0 || beside < 0) continue;
    if (own != 1 && beside != 1)
      invalid(cat("take_along_axis: expected sizes of axis ", a, " that broadcast together, got ",
                  x.text(), " beside ", other.text()));
    if (own == 1) shape[a] = beside;
  }
  const bool is_kept = std::ranges::all_of(shape, [](int64_t size) { return size == 1; });
  return is_kept ? x : broadcast_to(x, shape);
}

Values take_along(Call& c) {
  if (c[0].rank() != c[1].rank())
    invalid(cat("take_along_axis: expected as many axes in both, got ", c[0].text(), " beside ",
                c[1].text()));
  const int64_t axis = c.axis(2, c[0].rank());
  return node("GatherElements", {repeated_like(c[0], c[1], axis), repeated_like(c[1], c[0], axis)},
              {{"axis", axis}});
}

Values tile(Call& c) {
  Value x = c[0];
  std::vector<int64_t> repeats = c.ints(1);
  const auto rank = static_cast<size_t>(x.rank());
  if (repeats.size() < rank) repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  for (size_t axes = rank; axes < repeats.size(); ++axes)
    x = expand_dims(x, 0);
  return node("Tile", {x, c.graph.integers(repeats)});
}

const Function kRows[] = {
    {"broadcast_arrays(*arrays) -> tuple", "",
     "The arrays, each repeated to the shape that all of them have together.", "",
     [](Call& c) -> Values { return broadcast_together(c.list(0)); }},
    {"broadcast_to(x, shape: ints)", "", "x repeated over the axes that shape has more of.", "",
     repeated},
    {"concat(arrays: arrays, axis: int = 0)", "",
     "Arrays one after the other on axis; none: all of them as vectors.", "", concatenated},
    {"expand_dims(x, axis: int = 0)", "", "A new axis of size 1 at this index.", "",
     [](Call& c) -> Values { return expand_dims(c[0], c.axis(1, c[0].rank() + 1)); }},
    {"flip(x, axis: axes = none)", "", "The elements in reverse order along axis; none: along all.",
     "", flip},
    {"matrix_transpose(x)", "", "[..., m, n] becomes [..., n, m].", "", matrix_transpose},
    {"moveaxis(x, source: axes, destination: axes)", "",
     "One axis moved, or several, the others in their order.", "", moveaxis},
    {"pad(x, pad_width: plain, mode: text = \"constant\", constant_values: scalar = 0)", "",
     "x with more elements at the ends of its axes. pad_width: a number for all ends, a pair "
     "(before, "
     "behind) for all axes, or a pair for each axis. mode: \"constant\", \"edge\" (repeats the "
     "last "
     "element), \"reflect\" (without repeating it) or \"wrap\".",
     "", pad},
    {"permute_dims(x, axes: axes)", "", "Axis i of the result is axis axes[i] of x.", "", permuted},
    {"repeat(x, repeats: ints, axis: int = none)", "",
     "Each slice of axis so many times in a row; axis none: each element of x as one vector.", "",
     repeat},
    {"reshape(x, shape: ints)", "",
     "The same elements in another shape; one size may be -1 or symbolic: it is what is left.", "",
     reshaped},
    {"roll(x, shift: ints, axis: axes = none)", "",
     "The elements moved on by shift along axis; those that fall off come in at the other end. "
     "axis "
     "none: x as one vector, in the order of its elements.",
     "", roll},
    {"split(x, parts: int, axis: int = 0) -> tuple", "",
     "A tuple of so many equal parts along axis.", "",
     [](Call& c) -> Values { return split(c[0], c.integer(1), c.axis(2, c[0].rank())); }},
    {"squeeze(x, axis: axes = none)", "",
     "Without these axes, which have size 1; none: without all of that size.", "", squeezed},
    {"stack(arrays: arrays, axis: int = 0)", "", "Arrays of one shape on a new axis.", "", stack},
    {"take(x, indices: index, axis: int = 0)", "",
     "The slices of x at these indices of axis; negative ones count from the end.", "",
     [](Call& c) -> Values {
       return node("Gather", {c[0], c[1]}, {{"axis", c.axis(2, c[0].rank())}});
     }},
    {"take_along_axis(x, indices: index, axis: int = -1)", "",
     "For each element of indices, the one of x at that index of axis; the other axes are "
     "broadcast together.",
     "", take_along},
    {"tile(x, repeats: ints)", "",
     "x so many times along each axis; of the repeats and the axes the last ones belong together.",
     "", tile},
    {"transpose(x)", "", "All axes in reverse order.", "", transpose},
    {"unstack(x, axis: int = 0) -> tuple", "", "A tuple of the slices along axis, without it.", "",
     unstack},
};

}  // namespace

const std::span<const Function> kShapes = kRows;

}  // namespace tenon::arrays
