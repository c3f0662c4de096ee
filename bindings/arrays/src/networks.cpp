// SPDX-License-Identifier: Apache-2.0
// What layers of networks are made of. Images are [batch, channels, height, width].
#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

// How many axes lie behind [batch, channels].
int64_t spatial_rank(const Call& c) {
  if (c[0].rank() < 3)
    invalid(cat("x: expected [batch, channels, ...], three axes at least, got ", c[0].text()));
  return c[0].rank() - 2;
}

// One size for all, or one for each.
std::vector<int64_t> each(const Call& c, size_t i, int64_t rank) {
  std::vector<int64_t> sizes = c.ints(i);
  if (c.json(i).is_number()) sizes.resize(static_cast<size_t>(rank), sizes[0]);
  return sizes;
}
std::vector<int64_t> twice(std::vector<int64_t> sizes) {
  size_t count = sizes.size();
  sizes.reserve(2 * count);
  for (size_t i = 0; i < count; ++i)
    sizes.push_back(sizes[i]);
  return sizes;
}

Values along(Call& c) {
  return node(c.row.op, {c[0]}, {{"axis", c.integer(1)}});
}

Values linear(Call& c) {
  Value made = product("MatMul", alike({c[0], c[1]}));
  if (!c.has(2)) return made;
  const Function sum{"", "Add", "", "Or"};
  return operation(sum, alike({made, c[2]}));
}

Values conv(Call& c) {  // x, weight, bias, stride, padding, dilation, groups
  int64_t rank = spatial_rank(c);
  Json attributes = {
      {"strides", each(c, 3, rank)}, {"dilations", each(c, 5, rank)}, {"group", c.integer(6)}};
  if (!c.json(4).is_string()) {
    attributes["pads"] = twice(each(c, 4, rank));
  } else if (std::string padding = c.text(4); padding == "same" || padding == "valid") {
    attributes["auto_pad"] = padding == "same" ? "SAME_UPPER" : "VALID";
  } else {
    invalid(cat("conv: padding: expected numbers, 'same' or 'valid', got '", padding, "'"));
  }
  return c.graph.nodes("Conv", c.inputs(), attributes);
}

Values pool(Call& c) {  // x, window, stride, padding
  int64_t rank = spatial_rank(c);
  Json attributes = {{"kernel_shape", each(c, 1, rank)},
                     {"strides", each(c, c.has(2) ? 2 : 1, rank)},
                     {"pads", twice(each(c, 3, rank))}};
  if (c.row.op == "AveragePool") attributes["count_include_pad"] = 0;
  return node(c.row.op, {c[0]}, attributes);
}

Values one_hot(Call& c) {
  const int64_t classes = c.integer(1);
  if (classes < 0) invalid(cat("one_hot: classes: expected a number from 0, got ", classes));
  std::vector<Json> places;
  for (int64_t i = 0; i < classes; ++i)
    places.push_back(i);
  // A type of 8 or 16 bits may hold fewer numbers than there are classes.
  const bool is_narrow = !c[0].is_float() && TN_DTYPE_BITS(c[0].dtype) < 32;
  const Value labels = is_narrow ? cast(c[0], TN_I32) : c[0];
  Value all = c.graph.constant(labels.dtype, {classes}, places);
  return cast(eq(expand_dims(labels, labels.rank()), all), c.dtype(2));
}

const Function kRows[] = {
    {"avg_pool(x: float, window: ints, stride: ints = none, padding: ints = 0)", "AveragePool",
     "The mean of each window over the axes after [batch, channels]; padding is not counted.", "",
     pool},
    {"conv(x: together, weight: together, bias: together = none, stride: ints = 1, "
     "padding: ints = 0, dilation: ints = 1, groups: int = 1)",
     "",
     "x [b, c, ...] with weight [m, c/groups, ...] gives [b, m, ...]. padding: zeros before and "
     "after each axis, or \"same\" (the size of the result is that of x divided by stride, rounded "
     "up) or \"valid\" (none).",
     "", conv},
    {"layer_norm(x: together, scale: together, bias: together = none, epsilon: scalar = 1e-5)", "",
     "x [..., n] less its mean, divided by its deviation over the last axis, times scale [n].", "",
     [](Call& c) -> Values {
       Json attributes = {{"axis", -1}, {"epsilon", c.json(3).get<double>()}};
       return c.graph.nodes("LayerNormalization", c.inputs(), attributes);
     }},
    {"linear(x, weight, bias: array = none)", "",
     "x [..., n] times weight [n, m], and bias [m] added: [..., m].", "", linear},
    {"log_softmax(x: float, axis: int = -1)", "LogSoftmax",
     "The logarithm of softmax; the shape of x.", "", along},
    {"max_pool(x: float, window: ints, stride: ints = none, padding: ints = 0)", "MaxPool",
     "The largest element of each window over the axes after [batch, channels].", "", pool},
    {"one_hot(labels, classes: int, dtype: dtype = \"float32\")", "",
     "labels [...] of integers become [..., classes]: 1 at the label's index, else 0.", "",
     one_hot},
    {"softmax(x: float, axis: int = -1)", "Softmax",
     "exp(x) divided by its sum over axis; the shape of x.", "", along},
    {"stop_gradient(x)", "", "x, but a constant to gradients.", "",
     [](Call& c) -> Values { return stopped(c[0]); }},
};

}  // namespace

const std::span<const Function> kNetworks = kRows;

}  // namespace tenon::arrays
