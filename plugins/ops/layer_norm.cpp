// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization over the trailing axes.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// The type of the result: that of x, but of the scale where ONNX says so.
uint32_t normed_dtype(Node node) {
  return node.input(node.is("RMSNormalization") ? 1 : 0).dtype();
}

Status layer_norm_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), y = x;
  y.dtype = normed_dtype(node);
  TN_CHECK(set_output(edit, node, 0, y));
  tn_any stash = node.attr("stash_type");
  uint32_t statistics = stash.tag == TN_ANY_DTYPE ? static_cast<uint32_t>(stash.v.u) : TN_F32;
  if (!x.ranked) {
    TN_CHECK(set_output(edit, node, 1, unranked(statistics)));
    return set_output(edit, node, 2, unranked(statistics));
  }
  TN_TRY(axis, axis_in(node.attr_int("axis", -1), x.rank()));
  Dims dims = dims_of(x), normalized(dims.begin() + axis, dims.end());
  for (uint64_t i : {1u, 2u}) {
    // Leading axes of 1 are allowed: [1, 1, d] for [d].
    Dims shape = normalized;
    const size_t rank = node.input(i).type().dims.size();
    shape.insert(shape.begin(), rank - std::min(rank, shape.size()), Dim(1));
    TN_CHECK(expect_broadcast(node, i, shape));
  }
  std::fill(dims.begin() + axis, dims.end(), Dim(1));
  TN_CHECK(set_output(edit, node, 1, statistics, dims));
  return set_output(edit, node, 2, statistics, dims);
}

// An operand that broadcasts over the normalized axes, as doubles in their order.
Result<std::vector<double>> broadcast_operand(const Call& call,
                                              uint64_t i,
                                              int64_t size,
                                              std::span<const int64_t> normalized) {
  std::span<const int64_t> shape = call.shape(i);
  for (; shape.size() > normalized.size(); shape = shape.subspan(1))
    if (shape[0] != 1)
      return invalid(cat("input ", i, ": expected leading axes of 1, got ", shape[0]));
  std::vector<double> out(static_cast<size_t>(size));
  std::vector<int64_t> strides(normalized.size(), 0), own = dense_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t extent = shape[shape.size() - 1 - d], full = normalized[normalized.size() - 1 - d];
    if (extent != 1 && extent != full)
      return invalid(cat("input ", i, ": expected ", full, " or 1, got ", extent));
    strides[normalized.size() - 1 - d] = extent == 1 ? 0 : own[shape.size() - 1 - d];
  }
  TN_CHECK(dispatch<kFloats>(call.dtype(i), [&]<class U>() -> Status {
    Odometer at(normalized);
    for (double& value : out) {
      value = static_cast<double>(call.data<U>(i)[at.dot(strides)]);
      at.next();
    }
    return {};
  }));
  return out;
}

Status write_statistic(const Call& call, uint64_t i, int64_t axis, const std::vector<double>& of) {
  if (call.node().n_outputs() <= i) return {};
  std::vector<int64_t> shape = to_vector(call.shape(0));
  std::fill(shape.begin() + axis, shape.end(), 1);
  tn_any stash = call.node().attr("stash_type");
  uint32_t dtype = stash.tag == TN_ANY_DTYPE ? static_cast<uint32_t>(stash.v.u) : TN_F32;
  TN_TRY(out, call.out(i, dtype, shape));
  return dispatch<kFloats>(dtype, [&]<class T>() -> Status {
    for (size_t k = 0; k < of.size(); ++k)
      data_of<T>(out)[k] = static_cast<T>(of[k]);
    return {};
  });
}

// centred: subtracts the mean (layer norm); otherwise by the mean square alone (RMS norm).
Status norm_ref(const Call& call, bool centred) {
  std::span<const int64_t> shape = call.shape(0);
  TN_TRY(axis, axis_in(call.node().attr_int("axis", -1), shape.size()));
  std::span<const int64_t> normalized = shape.subspan(static_cast<size_t>(axis));
  int64_t size = element_count(normalized);
  int64_t rows = element_count(shape.subspan(0, static_cast<size_t>(axis)));
  std::vector<double> scale(static_cast<size_t>(size), 1.0), bias(static_cast<size_t>(size), 0.0);
  if (call.has(1)) {
    TN_TRY(given, broadcast_operand(call, 1, size, normalized));
    scale = given;
  }
  if (call.has(2)) {
    TN_TRY(given, broadcast_operand(call, 2, size, normalized));
    bias = given;
  }
  double epsilon = call.node().attr_float("epsilon", 1e-5);
  const uint32_t dtype = call.dtype(centred ? 0 : 1);
  TN_TRY(out, call.out(0, dtype, shape));
  std::vector<double> means(static_cast<size_t>(rows)), inverses(static_cast<size_t>(rows));
  TN_CHECK(dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    parallel_for(call.ctx(), static_cast<uint64_t>(rows), 4, [&](uint64_t begin, uint64_t end) {
      for (uint64_t row = begin; row < end; ++row) {
        const T* x = call.data<T>(0) + static_cast<int64_t>(row) * size;
        double mean = 0, square = 0;
        for (int64_t i = 0; centred && i < size; ++i)
          mean += static_cast<double>(x[i]) / static_cast<double>(size);
        for (int64_t i = 0; i < size; ++i) {
          double off = static_cast<double>(x[i]) - mean;
          square += off * off / static_cast<double>(size);
        }
        double inverse = 1 / std::sqrt(square + epsilon);
        for (int64_t i = 0; i < size; ++i) {
          auto k = static_cast<size_t>(i);
          store_number(data_of<char>(out), dtype, static_cast<int64_t>(row) * size + i,
                       (static_cast<double>(x[i]) - mean) * inverse * scale[k] + bias[k]);
        }
        means[row] = mean;
        inverses[row] = inverse;
      }
    });
    return {};
  }));
  if (!centred) return {};
  TN_CHECK(write_statistic(call, 1, axis, means));
  return write_statistic(call, 2, axis, inverses);
}
Status layer_norm_ref(const Call& call) {
  return norm_ref(call, true);
}
Status rms_norm_ref(const Call& call) {
  return norm_ref(call, false);
}

Result<std::vector<Value>> norm_decompose(EditView edit, Node node) {
  Type type = node.input(0).type();
  if (!type.ranked || node.n_outputs() > 1)
    return unsupported("only a known rank and one output are composite");
  TN_TRY(axis, axis_in(node.attr_int("axis", -1), type.rank()));
  std::vector<int64_t> list;
  for (int64_t i = axis; i < int64_t(type.rank()); ++i)
    list.push_back(i);
  TN_TRY(axes, edit.ints(list));
  Value centred = node.input(0);
  if (node.is("LayerNormalization")) {
    TN_TRY(mean, edit.op("ReduceMean", {centred, axes}));
    TN_TRY(off, edit.op("Sub", {centred, mean}));
    centred = off;
  }
  TN_TRY(square, edit.op("Mul", {centred, centred}));
  TN_TRY(variance, edit.op("ReduceMean", {square, axes}));
  Builder b(edit);
  Value epsilon = b.number(node.attr_float("epsilon", 1e-5), variance.dtype());
  TN_CHECK(b.status());
  TN_TRY(sum, edit.op("Add", {variance, epsilon}));
  TN_TRY(root, edit.op("Sqrt", {sum}));
  TN_TRY(normal, edit.op("Div", {centred, root}));
  auto typed = [&](Value v) { return b.cast(v, normed_dtype(node)); };
  Value y = b.mul(typed(normal), typed(node.input(1)));
  if (node.input(2)) y = b.add(y, typed(node.input(2)));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

// What x gets from the mean and the inverse deviation r, whose slope is -r^3 (x - mean) / size.
Value statistics_gradient(Gradients& g, int64_t axis, const Type& type) {
  auto part_of = [&](uint64_t i) { return i < g.of().n_outputs() ? g.cotangent(i) : Value{}; };
  Value mean_part = part_of(1), inverse_part = part_of(2), x = g.in(0), sum;
  if (!mean_part && !inverse_part) return {};
  const uint32_t wide = TN_DTYPE_BITS(type.dtype) < 32 ? uint32_t{TN_F32} : type.dtype;
  std::vector<int64_t> list;
  double size = 1;
  for (int64_t i = axis; i < int64_t(type.rank()); ++i) {
    list.push_back(i);
    size *= static_cast<double>(type.dims[static_cast<size_t>(i)]);
  }
  Value count = g.number(size, wide);
  if (mean_part) sum = g.expand_like(g.div(g.cast(mean_part, wide), count), x);
  if (inverse_part) {
    auto mean = [&](Value v) { return g.op("ReduceMean", {v, g.ints(list)}); };
    Value read = g.cast(x, wide), off = g.sub(read, mean(read));
    Value spread = g.add(mean(g.mul(off, off)), g.number(g.of().attr_float("epsilon", 1e-5), wide));
    Value cube = g.mul(g.mul(spread, g.op("Sqrt", {spread})), count);
    Value part = g.neg(g.mul(g.div(g.cast(inverse_part, wide), cube), off));
    sum = sum ? g.add(sum, part) : part;
  }
  return g.cast(sum, type.dtype);
}

// dx and the sums for scale and bias are one node's; a scale that broadcasts gets its sum.
Status layer_norm_vjp(Gradients& g) {
  Value x = g.in(0), scale = g.in(1);
  Type type = g.ranked(x, "LayerNormalization");
  TN_CHECK(g.status());
  TN_TRY(axis, axis_in(g.of().attr_int("axis", -1), type.rank()));
  std::vector<int64_t> normalized(type.dims.begin() + axis, type.dims.end());
  for (int64_t dim : normalized)
    if (dim < 0) return unsupported("LayerNormalization: the normalized sizes must be known here");
  Value more = g.wanted(0) ? statistics_gradient(g, axis, type) : Value{};
  if (more) g.set(0, more);
  if (!g.cotangent()) return {};
  bool is_full = scale.type().is_static() && scale.type().dims == normalized;
  Value full = is_full ? scale : g.op("Expand", {scale, g.ints(normalized)});
  Node made = g.node({.type = "LayerNormGrad",
                      .inputs = {g.cotangent(), x, full},
                      .attrs = {{"axis", axis}, {"epsilon", g.of().attr_float("epsilon", 1e-5)}},
                      .n_outputs = 3,
                      .domain = "tenon"});
  if (!made) return {};
  auto like = [&](Value sums, Value of) {
    if (of.type().is_static() && of.type().dims == normalized) return sums;
    Node narrow = g.node({.type = "SumTo", .inputs = {sums, g.shape_of(of)}, .domain = "tenon"});
    return narrow ? narrow.output() : Value{};
  };
  if (g.wanted(0)) g.set(0, more ? g.add(made.output(0), more) : made.output(0));
  if (g.wanted(1)) g.set(1, like(made.output(1), scale));
  if (g.wanted(2)) g.set(2, like(made.output(2), g.in(2)));
  return {};
}

Result<Node> norm_sample(EditView edit, uint64_t seed, bool centred) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(dims.size()), axis = random.integer(0, rank - 1);
  std::vector<int64_t> normalized(dims.begin() + axis, dims.end());
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(scale, random.input(TN_F32, normalized));
  std::vector<Value> inputs{x, scale};
  if (centred && random.coin()) {
    TN_TRY(bias, random.input(TN_F32, normalized));
    inputs.push_back(bias);
  }
  return edit.add({.type = centred ? "LayerNormalization" : "RMSNormalization",
                   .inputs = inputs,
                   .attrs = {{"axis", random.coin() ? axis : axis - rank}, {"epsilon", 1e-3}}});
}
Result<Node> layer_norm_sample(EditView edit, uint64_t seed) {
  return norm_sample(edit, seed, true);
}
Result<Node> rms_norm_sample(EditView edit, uint64_t seed) {
  return norm_sample(edit, seed, false);
}

OpCost norm_cost(Node node) {
  return {8 * output_elements(node), node_bytes(node)};
}

#define NORM_ATTRIBUTES                                       \
  R"([{"name": "axis", "type": "int", "default": -1},)"       \
  R"({"name": "epsilon", "type": "float", "default": 1e-5},)" \
  R"({"name": "stash_type", "type": "dtype"}])"
constexpr tn_op kLayerNorm =
    op_row({.type = "LayerNormalization",
            .since = 17,
            .axes = "b.. d~.., d.., d..? -> b.. d.., b.. d'..?, b.. d'..? ; b = axis",
            .attributes = NORM_ATTRIBUTES,
            .shape = shape<layer_norm_shape, "x: float, scale: U, bias: U? ; U = float">,
            .decompose = decompose<norm_decompose>,
            .cost = cost<norm_cost>,
            .ref = ref<layer_norm_ref>,
            .sample = sample<layer_norm_sample>,
            .vjp = vjp<layer_norm_vjp>,
            .vjp_inputs = 1 | 2,
            .vjp_outputs = 0,
            .cast = "cuda=fp32",
            .recompute = "fusible",
            .coupling = "same statistics=axis"});
constexpr tn_op kRmsNorm = op_row({.type = "RMSNormalization",
                                   .since = 23,
                                   .axes = "b.. d~.., d.. -> b.. d.. ; b = axis",
                                   .attributes = NORM_ATTRIBUTES,
                                   .shape = shape<layer_norm_shape, "x: float, scale: float">,
                                   .decompose = decompose<norm_decompose>,
                                   .cost = cost<norm_cost>,
                                   .ref = ref<rms_norm_ref>,
                                   .sample = sample<rms_norm_sample>,
                                   .cast = "cuda=fp32",
                                   .recompute = "fusible",
                                   .coupling = "same statistics=axis"});

}  // namespace

TENON_OPS(layer_norm, &kLayerNorm, &kRmsNorm)

}  // namespace tenon::ops
