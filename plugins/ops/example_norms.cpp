// SPDX-License-Identifier: Apache-2.0
#include "example_norms.hpp"

#include <algorithm>
#include <numeric>

#include "convolve.hpp"
#include "matrices.hpp"

namespace tenon::ops {
namespace {

// The axes from the second one on, of this rank.
std::vector<int64_t> inner_axes(size_t rank, size_t first = 1) {
  std::vector<int64_t> axes(rank - first);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(first));
  return axes;
}

// [n, ...] to [n]
Value sum_of_squares(Gradients& g, Value x) {
  std::vector<int64_t> axes = inner_axes(g.ranked(x, "example_norms").rank());
  return g.op("ReduceSumSquare", {x, g.ints(axes)}, {{"keepdims", 0}, {"noop_with_empty_axes", 1}});
}

// Where a size of 0 stands, that of x is taken.
Value in_form(Gradients& g, Value x, const std::vector<int64_t>& dims) {
  return g.op("Reshape", {x, g.ints(dims)});
}

// Rows of an example: [n, .., places, features]; places and features -1 where they are not known.
struct Rows {
  Value value;
  int64_t places, features;
};

bool gram_is_smaller(const Rows& x, const Rows& dy) {
  if (x.places < 0 || x.features < 0 || dy.features < 0) return true;
  return 2 * x.places * x.places < x.features * dy.features;
}

// |x^T dy|^2 of each example, over all axes behind the first.
Value product_norms(Gradients& g, const Rows& x, const Rows& dy, size_t rank) {
  Value xt = swapped(g, x.value, rank);
  if (!gram_is_smaller(x, dy)) return sum_of_squares(g, g.op("MatMul", {xt, dy.value}));
  Value grams =
      g.mul(g.op("MatMul", {x.value, xt}), g.op("MatMul", {dy.value, swapped(g, dy.value, rank)}));
  return g.sum(grams, inner_axes(rank), false);
}

int64_t product_of(const std::vector<int64_t>& dims, size_t first, size_t last) {
  int64_t product = 1;
  for (size_t i = first; i < last; ++i) {
    if (dims[i] < 0) return -1;
    product *= dims[i];
  }
  return product;
}

// Sums over the axes between the first and the last, then squares: of what is added to each place.
Value bias_norms(Gradients& g, Value dy, bool is_scalar) {
  size_t rank = g.ranked(dy, "example_norms").rank();
  std::vector<int64_t> axes = inner_axes(is_scalar ? rank : rank - 1);
  return sum_of_squares(g, axes.empty() ? dy : g.sum(dy, axes));
}

}  // namespace

Status matmul_example_norms(Gradients& g) {
  Type x = g.ranked(g.in(0), "MatMul"), w = g.ranked(g.in(1), "MatMul");
  if (g.wanted(0) || x.rank() < 2 || w.rank() != 2)
    return unsupported("expected a matrix of weights on the right");
  Value dy = g.cotangent();
  if (x.rank() == 2) {
    g.set(1, g.mul(sum_of_squares(g, g.in(0)), sum_of_squares(g, dy)));
    return {};
  }
  if (x.dims.back() < 0 || w.dims[1] < 0) return unsupported("the weight's sizes must be known");
  int64_t places = product_of(x.dims, 1, x.rank() - 1);
  Rows rows{in_form(g, g.in(0), {0, -1, x.dims.back()}), places, x.dims.back()};
  Rows cotangent{in_form(g, dy, {0, -1, w.dims[1]}), places, w.dims[1]};
  g.set(1, product_norms(g, rows, cotangent, 3));
  return {};
}

Status gemm_example_norms(Gradients& g) {
  if (g.wanted(0) || g.of().attr_int("transA") != 0)
    return unsupported("expected examples as rows of the first matrix");
  Value dy = g.cotangent();
  auto scaled = [&](Value squares, const char* factor) {
    double by = g.of().attr_float(factor, 1);
    return by == 1 ? squares : g.mul(squares, g.number(by * by, squares.dtype()));
  };
  if (g.wanted(1))
    g.set(1, scaled(g.mul(sum_of_squares(g, g.in(0)), sum_of_squares(g, dy)), "alpha"));
  if (!g.wanted(2)) return {};
  Type c = g.ranked(g.in(2), "Gemm");
  int64_t width = g.ranked(dy, "Gemm").dims[1];
  if (c.rank() > 0 && (c.dims.back() < 0 || width < 0))
    return unsupported("the bias's sizes must be known");
  bool is_scalar = c.rank() == 0 || c.dims.back() != width;
  g.set(2, scaled(bias_norms(g, dy, is_scalar), "beta"));
  return {};
}

namespace {

// The windows of x that a convolution multiplies, [n, channels * kernel, places..]: a convolution
// of each channel with one filter for each element of the kernel.
Value windows_of(Gradients& g, const Type& w, int64_t channels) {
  int64_t kernel = product_of(w.dims, 2, w.rank());
  std::vector<int64_t> dims{channels * kernel, 1};
  dims.insert(dims.end(), w.dims.begin() + 2, w.dims.end());
  std::vector<float> picks(static_cast<size_t>(channels * kernel * kernel), 0.0F);
  for (int64_t row = 0; row < channels * kernel; ++row)
    picks[static_cast<size_t>(row * kernel + row % kernel)] = 1;
  Value filters = g.take(g.edit().constant<float>(TN_F32, dims, picks));
  std::vector<Attr> attrs = conv_attributes(g.of());
  std::erase_if(attrs, [](const Attr& attr) { return attr.name == "group"; });
  attrs.emplace_back("group", channels);
  return g.op("Conv", {g.in(0), g.cast(filters, g.in(0).dtype())}, attrs);
}

}  // namespace

Status conv_example_norms(Gradients& g) {
  Type x = g.ranked(g.in(0), "Conv"), w = g.ranked(g.in(1), "Conv");
  Value dy = g.cotangent();
  Type result = g.ranked(dy, "Conv");
  if (g.wanted(2)) {
    std::vector<int64_t> places = inner_axes(result.rank(), 2);
    g.set(2, sum_of_squares(g, places.empty() ? dy : g.sum(dy, places)));
  }
  if (!g.wanted(1)) return {};
  if (!w.is_static()) return unsupported("the weight's sizes must be known");
  int64_t groups = g.of().attr_int("group", 1), channels = w.dims[1] * groups;
  int64_t kernel = product_of(w.dims, 2, w.rank()),
          places = product_of(result.dims, 2, result.rank());
  // Features first, as convolutions have them: rows after a transpose.
  auto rows = [&](Value value, int64_t features) {
    Value grouped = in_form(g, value, {0, groups, features, -1});
    return Rows{swapped(g, grouped, 4), places, features};
  };
  g.set(1, product_norms(g, rows(windows_of(g, w, channels), w.dims[1] * kernel),
                         rows(dy, w.dims[0] / groups), 4));
  return {};
}

Status gather_example_norms(Gradients& g) {
  Type table = g.ranked(g.in(0), "Gather"), at = g.ranked(g.in(1), "Gather");
  if (g.wanted(1) || g.of().attr_int("axis") != 0 || !table.is_static() || at.rank() < 1)
    return unsupported("expected rows of a table");
  Value dy = g.cotangent();
  if (at.rank() == 1) {
    g.set(0, sum_of_squares(g, dy));
    return {};
  }
  int64_t width = product_of(table.dims, 1, table.rank());
  // Indices may count from the end.
  Value size = g.take(g.edit().constant<int64_t>(TN_I64, {}, {table.dims[0]}));
  Value rows = in_form(g, g.op("Mod", {g.cast(g.in(1), TN_I64), size}), {0, -1});
  Value same = g.op(
      "Equal", {g.op("Unsqueeze", {rows, g.ints({2})}), g.op("Unsqueeze", {rows, g.ints({1})})});
  Value flat = in_form(g, dy, {0, -1, width});
  Value gram = g.op("MatMul", {flat, swapped(g, flat, 3)});
  g.set(0, g.sum(g.mul(gram, g.cast(same, dy.dtype())), {1, 2}, false));
  return {};
}

}  // namespace tenon::ops
