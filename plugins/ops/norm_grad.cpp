// SPDX-License-Identifier: Apache-2.0
// tenon:BatchNormGrad(dy, x, scale) and tenon:LayerNormGrad(dy, x, scale): what comes back through
// a normalization over statistics of x itself. Both give dx, dscale, dbias. With n = (x -
// mean)/root and the means taken over what the statistics are of (Ioffe & Szegedy 2015, section 3):
//   dx = (dy*scale - mean(dy*scale) - n*mean(dy*scale*n))/root;  dscale = sum(dy*n); dbias =
//   sum(dy)
#include <algorithm>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

bool is_batch_norm(Node node) {
  return node.type() == "BatchNormGrad";
}

// First axis that LayerNormalization goes over.
Result<int64_t> first_axis(Node node, size_t rank) {
  return axis_in(node.attr_int("axis", -1), rank);
}

Status norm_grad_shape(EditView edit, Node node) {
  Type x = node.input(1).type(), scale = node.input(2).type();
  if (!is_batch_norm(node) && x.is_static() && scale.is_static()) {
    TN_TRY(axis, first_axis(node, x.rank()));
    int64_t size = element_count(std::span(x.dims).subspan(static_cast<size_t>(axis)));
    if (scale.elements() != size)
      return invalid(cat("scale: expected ", size, " elements, got ", scale.elements()));
  }
  TN_CHECK(set_output(edit, node, 0, node.input(1).type()));
  TN_CHECK(set_output(edit, node, 1, node.input(2).type()));
  return set_output(edit, node, 2, node.input(2).type());
}

// Where element i of x belongs: to which statistics, and to which element of scale.
struct Places {
  bool by_channel;
  AxisSplit split;  // by channel; else size and inner are one row
  int64_t groups() const { return by_channel ? split.size : split.outer; }
  int64_t scales() const { return by_channel ? split.size : split.size * split.inner; }
  int64_t count() const { return split.outer * split.size * split.inner; }
  int64_t group(int64_t i) const {
    return by_channel ? i / split.inner % split.size : i / (split.size * split.inner);
  }
  int64_t scale(int64_t i) const { return by_channel ? group(i) : i % (split.size * split.inner); }
};

struct ScaleGrads {
  std::vector<double> dscale, dbias;
};

template <class T>
ScaleGrads norm_grad(const Call& call,
                     const Places& at,
                     const std::vector<double>& scale,
                     const DLTensor& dx) {
  const T *dy = call.data<T>(0), *x = call.data<T>(1);
  auto groups = static_cast<size_t>(at.groups()), scales = static_cast<size_t>(at.scales());
  double each = static_cast<double>(at.groups()) / static_cast<double>(at.count());
  double epsilon = call.node().attr_float("epsilon", 1e-5);
  std::vector<double> mean(groups), root(groups), inner(groups), along(groups);
  ScaleGrads sums{std::vector<double>(scales), std::vector<double>(scales)};
  auto for_all = [&](auto&& visit) {
    for (int64_t i = 0; i < at.count(); ++i)
      visit(i, static_cast<size_t>(at.group(i)), static_cast<size_t>(at.scale(i)));
  };
  auto normal = [&](int64_t i, size_t g) {
    return (static_cast<double>(x[i]) - mean[g]) / root[g];
  };
  for_all([&](int64_t i, size_t g, size_t) { mean[g] += static_cast<double>(x[i]) * each; });
  for_all([&](int64_t i, size_t g, size_t) {
    double off = static_cast<double>(x[i]) - mean[g];
    root[g] += off * off * each;
  });
  for (double& r : root)
    r = std::sqrt(r + epsilon);
  for_all([&](int64_t i, size_t g, size_t s) {
    auto d = static_cast<double>(dy[i]);
    sums.dbias[s] += d;
    sums.dscale[s] += d * normal(i, g);
    double scaled = d * scale[s];
    inner[g] += scaled * each;
    along[g] += scaled * normal(i, g) * each;
  });
  for_all([&](int64_t i, size_t g, size_t s) {
    double scaled = static_cast<double>(dy[i]) * scale[s];
    data_of<T>(dx)[i] = static_cast<T>((scaled - inner[g] - normal(i, g) * along[g]) / root[g]);
  });
  return sums;
}

Status norm_grad_ref(const Call& call) {
  if (call.shape(1).size() < 2 && is_batch_norm(call.node()))
    return invalid("x: expected rank from 2");
  bool by_channel = is_batch_norm(call.node());
  int64_t axis = 1;
  if (!by_channel) {
    TN_TRY(found, first_axis(call.node(), call.shape(1).size()));
    axis = found;
  }
  Places at{by_channel, AxisSplit(call.shape(1), axis)};
  if (element_count(call.in(2)) != at.scales())
    return invalid(
        cat("scale: expected ", at.scales(), " elements, got ", element_count(call.in(2))));
  if (to_vector(call.shape(0)) != to_vector(call.shape(1)))
    return invalid("dy: expected the shape of x");
  TN_TRY(dx, call.out(0, call.dtype(1), call.shape(1)));
  TN_TRY(dscale, call.out(1, call.dtype(2), call.shape(2)));
  TN_TRY(dbias, call.out(2, call.dtype(2), call.shape(2)));
  std::vector<double> scale(static_cast<size_t>(at.scales()));
  TN_CHECK(dispatch<kFloats>(call.dtype(2), [&]<class U>() -> Status {
    std::transform(call.data<U>(2), call.data<U>(2) + at.scales(), scale.begin(),
                   [](U value) { return static_cast<double>(value); });
    return {};
  }));
  ScaleGrads sums;
  TN_CHECK(dispatch<kFloats>(call.dtype(1), [&]<class T>() -> Status {
    sums = norm_grad<T>(call, at, scale, dx);
    return {};
  }));
  return dispatch<kFloats>(call.dtype(2), [&]<class U>() -> Status {
    for (size_t s = 0; s < scale.size(); ++s) {
      data_of<U>(dscale)[s] = static_cast<U>(sums.dscale[s]);
      data_of<U>(dbias)[s] = static_cast<U>(sums.dbias[s]);
    }
    return {};
  });
}

Result<std::vector<Value>> norm_grad_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value dy = node.input(0), x = node.input(1), scale = node.input(2);
  size_t rank = b.ranked(x, node.type()).rank();
  TN_CHECK(b.status());
  std::vector<int64_t> over, others;  // axes of the statistics, axes that scale has not
  int64_t first = 1;
  if (!is_batch_norm(node)) {
    TN_TRY(found, first_axis(node, rank));
    first = found;
  }
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i) {
    bool is_scaled = is_batch_norm(node) ? i == 1 : i >= first;
    if (!is_scaled) others.push_back(i);
    if (is_batch_norm(node) != is_scaled) over.push_back(i);
  }
  auto mean = [&](Value v) { return b.op("ReduceMean", {v, b.ints(over)}); };
  Value wide = b.cast(scale, x.dtype());
  if (is_batch_norm(node)) wide = b.op("Unsqueeze", {wide, b.ints(others)});
  Value centred = b.sub(x, mean(x));
  Value variance = mean(b.mul(centred, centred));
  Value epsilon = b.number(node.attr_float("epsilon", 1e-5), x.dtype());
  Value root = b.op("Sqrt", {b.add(variance, epsilon)});
  Value normal = b.div(centred, root);
  Value scaled = b.mul(dy, wide);
  Value along = b.mul(normal, mean(b.mul(scaled, normal)));
  Value dx = b.div(b.sub(b.sub(scaled, mean(scaled)), along), root);
  Value dscale = b.cast(b.sum(b.mul(dy, normal), others, false), scale.dtype());
  Value dbias = b.cast(b.sum(dy, others, false), scale.dtype());
  TN_CHECK(b.status());
  return std::vector<Value>{dx, dscale, dbias};
}

Result<Node> norm_grad_sample(EditView edit, uint64_t seed, std::string_view type) {
  Sampler random(edit, seed);
  bool by_channel = type == "BatchNormGrad";
  std::vector<int64_t> dims = random.shape(2, 4);
  dims[0] = random.integer(2, 5);
  int64_t axis = random.integer(1, static_cast<int64_t>(dims.size()) - 1);
  std::vector<int64_t> scaled{dims[1]};
  if (!by_channel) scaled.assign(dims.begin() + axis, dims.end());
  TN_TRY(dy, random.input(TN_F32, dims));
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(scale, random.input(TN_F32, scaled));
  std::vector<Attr> attrs{{"epsilon", 0.1}};
  if (!by_channel) attrs.emplace_back("axis", axis);
  return edit.add(
      {.type = type, .inputs = {dy, x, scale}, .attrs = attrs, .n_outputs = 3, .domain = "tenon"});
}
Result<Node> batch_norm_grad_sample(EditView edit, uint64_t seed) {
  return norm_grad_sample(edit, seed, "BatchNormGrad");
}
Result<Node> layer_norm_grad_sample(EditView edit, uint64_t seed) {
  return norm_grad_sample(edit, seed, "LayerNormGrad");
}

OpCost norm_grad_cost(Node node) {
  return {11 * output_elements(node), node_bytes(node)};
}

constexpr tn_op kBatchNormGrad =
    op_row({.type = "BatchNormGrad",
            .domain = "tenon",
            .axes = "n~ c s~.., n~ c s~.., c -> n c s.., c, c",
            .attributes = R"([{"name": "epsilon", "type": "float", "default": 1e-5}])",
            .shape = shape<norm_grad_shape, "dy: T[n c s..], x: T[n c s..], scale: any[c]">,
            .decompose = decompose<norm_grad_decompose>,
            .cost = cost<norm_grad_cost>,
            .ref = ref<norm_grad_ref>,
            .sample = sample<batch_norm_grad_sample>,
            .cast = "own=2"});
constexpr tn_op kLayerNormGrad =
    op_row({.type = "LayerNormGrad",
            .domain = "tenon",
            .attributes = R"([{"name": "axis", "type": "int", "default": -1},
                              {"name": "epsilon", "type": "float", "default": 1e-5}])",
            .shape = shape<norm_grad_shape, "dy: T[s..], x: T[s..], scale: any">,
            .decompose = decompose<norm_grad_decompose>,
            .cost = cost<norm_grad_cost>,
            .ref = ref<norm_grad_ref>,
            .sample = sample<layer_norm_grad_sample>,
            .cast = "cuda=fp32"});

}  // namespace

TENON_OPS(norm_grad, &kBatchNormGrad, &kLayerNormGrad)

}  // namespace tenon::ops
