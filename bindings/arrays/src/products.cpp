// SPDX-License-Identifier: Apache-2.0
// Products of arrays.
#include <algorithm>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

Values vecdot(Call& c) {
  if (c[0].is_bool()) {
    Value both = node("And", {c[0], c[1]});
    return any_of(both, {c.axis(2, both.rank())}, false);
  }
  Value both = c[0] * c[1];
  return reduce("ReduceSum", both, {c.axis(2, both.rank())}, false);
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

Values tensordot(Call& c) {
  int64_t ranks[] = {c[0].rank(), c[1].rank()};
  Json axes = c.json(2);
  std::vector<int64_t> summed[2];
  if (axes.is_number_integer()) {
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

const Function kRows[] = {
    {"einsum(equation: text, *arrays: together)", "",
     "Sums of products, as \"bij,bjk->bik\" says: letters that the result lacks are summed.", "",
     [](Call& c) -> Values {
       if (c.list(1).empty()) invalid("einsum: arrays: expected one at least");
       return product("Einsum", c.list(1), {{"equation", c.text(0)}});
     }},
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
