// SPDX-License-Identifier: Apache-2.0
// InstanceNormalization, GroupNormalization and LRN.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status same_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  int64_t channels = x.ranked && x.rank() > 1 ? x.dims[1] : TN_DIM_UNKNOWN;
  if (node.is("LRN") && node.attr_int("size", 1) < 1)
    return invalid(cat("size: expected a number from 1, got ", node.attr_int("size", 1)));
  if (node.is("GroupNormalization")) {
    int64_t groups = node.attr_int("num_groups", 1);
    if (groups < 1 || (channels >= 0 && channels % groups != 0))
      return invalid(cat("num_groups: expected a divisor of ", channels, ", got ", groups));
  }
  return set_output(edit, node, 0, node.input(0).type());
}

// Each of batch*groups runs of elements is brought to mean 0 and variance 1, then scaled and
// shifted per channel.
Status normalize(const Call& call, int64_t groups) {
  std::span<const int64_t> shape = call.shape(0);
  if (shape.size() < 2) return invalid(cat("x: expected rank from 2, got ", shape.size()));
  AxisSplit split(shape, 1);
  if (groups < 1 || split.size % groups != 0)
    return invalid(cat("num_groups: expected a divisor of ", split.size, ", got ", groups));
  for (uint64_t i : {1u, 2u})
    if (element_count(call.in(i)) != split.size)
      return invalid(cat("input ", i, ": expected ", split.size, " elements"));
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  double epsilon = call.node().attr_float("epsilon", 1e-5);
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T *scale = call.data<T>(1), *bias = call.data<T>(2);
    int64_t run = split.size / groups * split.inner;
    auto runs = static_cast<uint64_t>(split.outer * groups);
    parallel_for(call.ctx(), runs, 1, [&](uint64_t begin, uint64_t end) {
      for (auto r = static_cast<int64_t>(begin); r < static_cast<int64_t>(end); ++r) {
        const T* x = call.data<T>(0) + r * run;
        double mean = 0, square = 0, n = static_cast<double>(run);
        for (int64_t i = 0; i < run; ++i)
          mean += static_cast<double>(x[i]) / n;
        for (int64_t i = 0; i < run; ++i)
          square += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean) / n;
        double inverse = 1 / std::sqrt(square + epsilon);
        for (int64_t i = 0; i < run; ++i) {
          int64_t c = (r * run + i) / split.inner % split.size;
          double value = (static_cast<double>(x[i]) - mean) * inverse;
          data_of<T>(out)[r * run + i] =
              static_cast<T>(value * static_cast<double>(scale[c]) + static_cast<double>(bias[c]));
        }
      }
    });
    return {};
  });
}
Status instance_ref(const Call& call) {
  return normalize(call, call.shape(0).size() < 2 ? 1 : call.shape(0)[1]);
}
Status group_ref(const Call& call) {
  return normalize(call, call.node().attr_int("num_groups", 1));
}

Result<Node> norm_sample(EditView edit, uint64_t seed, bool grouped) {
  Sampler random(edit, seed);
  int64_t groups = random.integer(1, 3), channels = groups * random.integer(1, 3);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 2), channels, random.integer(2, 4), 3}));
  TN_TRY(scale, random.input(TN_F32, {channels}));
  TN_TRY(bias, random.input(TN_F32, {channels}));
  std::vector<Attr> attrs{{"epsilon", 1e-2}};
  if (grouped) attrs.emplace_back("num_groups", groups);
  return edit.add({.type = grouped ? "GroupNormalization" : "InstanceNormalization",
                   .inputs = {x, scale, bias},
                   .attrs = attrs});
}
Result<Node> instance_sample(EditView edit, uint64_t seed) {
  return norm_sample(edit, seed, false);
}
Result<Node> group_sample(EditView edit, uint64_t seed) {
  return norm_sample(edit, seed, true);
}

// Runs of groups as rows of a matrix.
Result<std::vector<Value>> norm_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  Type type = b.ranked(x, node.type());
  if (!type.ranked || type.rank() < 2 || type.dims[1] < 0)
    return unsupported("the number of channels must be known");
  int64_t groups = node.is("GroupNormalization") ? node.attr_int("num_groups", 1) : type.dims[1];
  Value rows = b.op("Reshape", {x, b.ints({0, groups, -1})}), axis = b.ints({-1});
  Value centred = b.sub(rows, b.op("ReduceMean", {rows, axis}));
  Value variance = b.op("ReduceMean", {b.mul(centred, centred), axis});
  Value epsilon = b.number(node.attr_float("epsilon", 1e-5), x.dtype());
  Value normal = b.div(centred, b.op("Sqrt", {b.add(variance, epsilon)}));
  std::vector<int64_t> channel(type.rank() - 1, 1);
  channel[0] = type.dims[1];
  Value scaled = b.mul(b.reshape_like(normal, x), b.reshape(node.input(1), channel));
  Value y = b.add(scaled, b.reshape(node.input(2), channel));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

// The window over channels as a sum of shifted squares.
Result<std::vector<Value>> lrn_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0), sum;
  Type type = b.ranked(x, "LRN");
  int64_t size = node.attr_int("size", 1);
  std::vector<int64_t> pads(type.rank() * 2, 0);
  if (type.rank() < 2 || type.dims[1] < 0) return unsupported("the channels must be known");
  // Beyond the outermost channels there is nothing to add, however large the window is.
  const int64_t before = std::min((size - 1) / 2, type.dims[1]);
  const int64_t behind = std::min(size / 2, type.dims[1]);
  pads[1] = before;
  pads[type.rank() + 1] = behind;
  Value padded = b.op("Pad", {b.mul(x, x), b.ints(pads)});
  for (int64_t i = 0; i <= before + behind; ++i) {
    Value shifted = b.op("Slice", {padded, b.ints({i}), b.ints({i + type.dims[1]}), b.ints({1})});
    sum = sum ? b.add(sum, shifted) : shifted;
  }
  auto number = [&](double v) { return b.number(v, x.dtype()); };
  double alpha = node.attr_float("alpha", 1e-4) / static_cast<double>(size);
  Value scale = b.add(b.mul(sum, number(alpha)), number(node.attr_float("bias", 1.0)));
  Value y = b.div(x, b.op("Pow", {scale, number(node.attr_float("beta", 0.75))}));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

// Krizhevsky et al. (2012): by the squares of neighbouring channels.
Status lrn_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  if (shape.size() < 2) return invalid(cat("x: expected rank from 2, got ", shape.size()));
  AxisSplit split(shape, 1);
  int64_t size = call.node().attr_int("size", 1);
  double alpha = call.node().attr_float("alpha", 1e-4), beta = call.node().attr_float("beta", 0.75);
  double bias = call.node().attr_float("bias", 1.0);
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    const T* x = call.data<T>(0);
    for (int64_t i = 0, n = element_count(shape); i < n; ++i) {
      int64_t c = i / split.inner % split.size;
      int64_t first = std::max<int64_t>(0, c - (size - 1) / 2);
      int64_t last = std::min(split.size - 1, c + size / 2);
      double sum = 0;
      for (int64_t k = first; k <= last; ++k) {
        auto value = static_cast<double>(x[i + (k - c) * split.inner]);
        sum += value * value;
      }
      double scale = std::pow(bias + alpha / static_cast<double>(size) * sum, beta);
      data_of<T>(out)[i] = static_cast<T>(static_cast<double>(x[i]) / scale);
    }
    return {};
  });
}
Result<Node> lrn_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {2, random.integer(1, 6), 3, 2}));
  return edit.add({.type = "LRN", .inputs = {x}, .attrs = {{"size", random.integer(1, 4)}}});
}

constexpr tn_op kInstance =
    op_row({.type = "InstanceNormalization",
            .since = 22,
            .axes = "n c s~.., c, c -> n c s..",
            .attributes = R"([{"name": "epsilon", "type": "float", "default": 1e-5}])",
            .shape = shape<same_shape, "x: T[n c s..], scale: T[c], bias: T[c] ; T = float">,
            .decompose = decompose<norm_decompose>,
            .ref = ref<instance_ref>,
            .sample = sample<instance_sample>});
constexpr tn_op kGroup =
    op_row({.type = "GroupNormalization",
            .since = 21,
            .axes = "n c~ s~.., c, c -> n c s..",
            .attributes = R"([{"name": "epsilon", "type": "float", "default": 1e-5},
                              {"name": "num_groups", "type": "int"},
                              {"name": "stash_type", "type": "dtype"}])",
            .shape = shape<same_shape, "x: T[n c s..], scale: T[c], bias: T[c] ; T = float">,
            .decompose = decompose<norm_decompose>,
            .ref = ref<group_ref>,
            .sample = sample<group_sample>,
            .cast = "cuda=fp32",
            .coupling = "same groups=num_groups"});
constexpr tn_op kLrn =
    op_row({.type = "LRN",
            .since = 13,
            .axes = "n c~ s.. -> n c s..",
            .attributes = R"([{"name": "alpha", "type": "float", "default": 1e-4},
                                                 {"name": "beta", "type": "float", "default": 0.75},
                                                 {"name": "bias", "type": "float", "default": 1.0},
                                                 {"name": "size", "type": "int"}])",
            .shape = shape<same_shape, "x: float[n c s..]">,
            .decompose = decompose<lrn_decompose>,
            .ref = ref<lrn_ref>,
            .sample = sample<lrn_sample>,
            .cast = "cpu=fp32 cuda=fp32"});

}  // namespace

TENON_OPS(group_norm, &kInstance, &kGroup, &kLrn)

}  // namespace tenon::ops
