// SPDX-License-Identifier: Apache-2.0
// Products of arrays.
#include <algorithm>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

// The axis is not one of those that are broadcast.
Values vecdot(Call& c) {
  Value both = c[0].is_bool() ? node("And", {c[0], c[1]}) : c[0] * c[1];
  const int64_t axis = c.axis(2, both.rank()), from_end = both.rank() - axis;
  for (const Value& x : {c[0], c[1]}) {
    const int64_t size =
        x.rank() < from_end ? 1 : x.dims[x.dims.size() - static_cast<size_t>(from_end)];
    if (size >= 0 && both.dims[static_cast<size_t>(axis)] > size)
      invalid(cat("vecdot: expected one size of axis ", axis, " in both, got ", c[0].text(),
                  " beside ", c[1].text()));
  }
  return c[0].is_bool() ? any_of(both, {axis}, false) : reduce("ReduceSum", both, {axis}, false);
}

char letter(int64_t i) {
  return static_cast<char>(i < 26 ? 'a' + i : 'A' + i - 26);
}
std::string letters(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += letter(first + i);
  return text;
}

// The axes that are summed are pairs of one size, and no axis is in two of them.
void check_pairs(const Call& c, const std::vector<int64_t> (&summed)[2]) {
  for (size_t i = 0; i < summed[0].size(); ++i) {
    int64_t sizes[2];
    for (size_t side : {0u, 1u}) {
      const auto& axes = summed[side];
      sizes[side] = c[side].dims[static_cast<size_t>(axes[i])];
      if (std::count(axes.begin(), axes.end(), axes[i]) > 1)
        invalid(cat("tensordot: axes: expected each axis once, got ", cxx::dump(c.json(2))));
    }
    if (sizes[0] >= 0 && sizes[1] >= 0 && sizes[0] != sizes[1])
      invalid(cat("tensordot: axes: expected axes of one size, got ", c[0].text(), " beside ",
                  c[1].text()));
  }
}

Values tensordot(Call& c) {
  int64_t ranks[] = {c[0].rank(), c[1].rank()};
  Json axes = c.json(2);
  std::vector<int64_t> summed[2];
  if (is_whole(axes)) {
    for (int64_t i = 0; i < axes.get<int64_t>(); ++i) {
      summed[0].push_back(axis_of(i - axes.get<int64_t>(), ranks[0]));
      summed[1].push_back(axis_of(i, ranks[1]));
    }
  } else {
    bool fits = axes.is_array() && axes.size() == 2 && axes[0].is_array() && axes[1].is_array() &&
                axes[0].size() == axes[1].size();
    if (!fits)
      invalid(cat("tensordot: axes: expected as many of a as of b, got ", cxx::dump(axes)));
    for (size_t side : {0u, 1u})
      for (int64_t axis : axes[side].get<std::vector<int64_t>>())
        summed[side].push_back(axis_of(axis, ranks[side]));
  }
  check_pairs(c, summed);
  std::string names[] = {letters(0, ranks[0]), letters(ranks[0], ranks[1])};
  std::string kept;
  for (size_t i = 0; i < summed[0].size(); ++i)
    names[1][static_cast<size_t>(summed[1][i])] = names[0][static_cast<size_t>(summed[0][i])];
  for (size_t side : {0u, 1u})
    for (int64_t a = 0; a < ranks[side]; ++a)
      if (std::find(summed[side].begin(), summed[side].end(), a) == summed[side].end())
        kept += names[side][static_cast<size_t>(a)];
  return product("Einsum", {c[0], c[1]}, {{"equation", cat(names[0], ",", names[1], "->", kept)}});
}

// Sums of products of x with y in reverse, which slides over it: a convolution of one channel.
Values convolve(Call& c) {
  Value x = c[0], y = c[1];
  for (const Value& v : {x, y})
    if (v.rank() != 1 || v.size_of(0) < 1)
      invalid(cat("convolve: expected vectors of one element at least, got ", v.text()));
  if (x.size_of(0) < y.size_of(0)) std::swap(x, y);
  const int64_t reach = y.size_of(0) - 1;
  const std::string mode = c.text(2);
  if (mode != "full" && mode != "same" && mode != "valid")
    invalid(cat("convolve: mode: expected 'full', 'same' or 'valid', got '", mode, "'"));
  const int64_t before = mode == "full" ? reach : mode == "same" ? reach - reach / 2 : 0;
  const int64_t behind = mode == "full" ? reach : mode == "same" ? reach / 2 : 0;
  auto one = [&](int64_t i) { return c.graph.integers({{i}}); };
  Value reversed = node("Slice", {y, one(-1), one(-INT64_MAX), one(0), one(-1)});
  Value made = node("Conv", {reshape(x, {1, 1, -1}), reshape(reversed, {1, 1, -1})},
                    {{"pads", {before, behind}}});
  return reshape(made, {-1});
}

// Axes of a and of b in turn, then each pair of them as one.
Values kron(Call& c) {
  std::vector<Value> sides = {c[0], c[1]};
  const int64_t rank = std::max(sides[0].rank(), sides[1].rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  for (size_t side : {0u, 1u}) {
    Value& x = sides[side];
    while (x.rank() < rank)
      x = expand_dims(x, 0);
    for (int64_t axis = 0; axis < rank; ++axis) {
      dims[static_cast<size_t>(axis)] *= x.size_of(2 * axis);
      x = expand_dims(x, 2 * axis + (side == 0 ? 1 : 0));
    }
  }
  return reshape(product("Mul", sides), dims);
}

const Function kRows[] = {
    {"convolve(x: together float, y: together float, mode: text = \"full\")", "",
     "The discrete convolution of two vectors: of all places where they overlap (\"full\"), of as "
     "many as the longer one has (\"same\"), or of those where the shorter one lies within it "
     "(\"valid\").",
     "", convolve},
    {"einsum(equation: text, *arrays: together)", "",
     "Sums of products, as \"bij,bjk->bik\" says: letters that the result lacks are summed.", "",
     [](Call& c) -> Values {
       if (c.list(1).empty()) invalid("einsum: arrays: expected one at least");
       return product("Einsum", c.list(1), {{"equation", c.text(0)}});
     }},
    {"kron(a: together, b: together)", "",
     "The Kronecker product: b times each element of a, block by block.", "", kron},
    {"matmul(a: together, b: together)", "",
     "[..., m, k] times [..., k, n] is [..., m, n]; leading axes are broadcast.", "",
     [](Call& c) -> Values { return product("MatMul", c.inputs()); }},
    {"tensordot(a: together, b: together, axes: plain = 2)", "",
     "Sums of products over axes of both: so many of the last of a and the first of b, or lists.",
     "", tensordot},
    {"vecdot(a: together, b: together, axis: int = -1)", "", "The sum of products over axis.", "",
     vecdot},
};

}  // namespace

const std::span<const Function> kProducts = kRows;

}  // namespace tenon::arrays
