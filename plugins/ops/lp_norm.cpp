// SPDX-License-Identifier: Apache-2.0
// LpNormalization and MeanVarianceNormalization.
#include <algorithm>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "matrices.hpp"
#include "roots.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status same_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}

// Lines whose norm is 0 stay 0.
Status lp_ref(const Call& call) {
  TN_TRY(axis, axis_in(call.node().attr_int("axis", -1), call.shape(0).size()));
  int64_t p = call.node().attr_int("p", 2);
  if (p != 1 && p != 2) return invalid(cat("p: expected 1 or 2, got ", p));
  AxisSplit split(call.shape(0), axis);
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  return dispatch<kFloats>(call.dtype(0), [&, &y = out]<class T>() -> Status {
    for (int64_t line = 0; line < split.outer * split.inner; ++line) {
      int64_t first = line / split.inner * split.size * split.inner + line % split.inner;
      auto value = [&](int64_t k) {
        return static_cast<double>(call.data<T>(0)[first + k * split.inner]);
      };
      double sum = 0;
      for (int64_t k = 0; k < split.size; ++k)
        sum += p == 1 ? std::fabs(value(k)) : value(k) * value(k);
      double norm = p == 1 ? sum : std::sqrt(sum);
      for (int64_t k = 0; k < split.size; ++k)
        data_of<T>(y)[first + k * split.inner] = static_cast<T>(norm == 0 ? 0 : value(k) / norm);
    }
    return {};
  });
}

Result<std::vector<Value>> lp_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  bool absolute = node.attr_int("p", 2) == 1;
  Value sum = b.sum(absolute ? b.op("Abs", {x}) : b.mul(x, x), {node.attr_int("axis", -1)});
  Value none = b.op("Equal", {sum, b.number(0, x.dtype())});
  Value safe = b.op("Where", {none, b.number(1, x.dtype()), sum});
  Value y = b.div(x, absolute ? safe : b.op("Sqrt", {safe}));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> lp_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  TN_TRY(x, random.input(TN_F32, dims));
  return edit.add({.type = "LpNormalization",
                   .inputs = {x},
                   .attrs = {{"axis", random.integer(0, static_cast<int64_t>(dims.size()) - 1)},
                             {"p", random.integer(1, 2)}}});
}

Result<std::vector<bool>> mean_axes(const Call& call) {
  std::vector<int64_t> axes = call.node().attr_ints("axes");
  if (call.node().attr("axes").tag == TN_ANY_NONE) axes = {0, 2, 3};
  std::vector<bool> out(call.shape(0).size(), false);
  for (int64_t stated : axes) {
    TN_TRY(axis, axis_in(stated, out.size(), "axes"));
    out[static_cast<size_t>(axis)] = true;
  }
  return out;
}

Status mvn_ref(const Call& call) {
  TN_TRY(reduced, mean_axes(call));
  std::span<const int64_t> shape = call.shape(0);
  std::vector<int64_t> steps(shape.size(), 0);  // into one cell per group
  int64_t groups = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (reduced[d]) continue;
    steps[d] = groups;
    groups *= shape[d];
  }
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  return dispatch<kFloats>(call.dtype(0), [&, &y = out]<class T>() -> Status {
    const T* x = call.data<T>(0);
    int64_t n = element_count(shape);
    auto each = [&](auto&& f) {
      Odometer at(shape);
      for (int64_t i = 0; i < n; ++i, at.next())
        f(i, static_cast<size_t>(at.dot(steps)));
    };
    std::vector<double> mean(static_cast<size_t>(groups)), square(mean.size());
    double count = static_cast<double>(n) / static_cast<double>(std::max<int64_t>(groups, 1));
    each([&](int64_t i, size_t g) { mean[g] += static_cast<double>(x[i]) / count; });
    each([&](int64_t i, size_t g) {
      double away = static_cast<double>(x[i]) - mean[g];
      square[g] += away * away / count;
    });
    each([&](int64_t i, size_t g) {  // ONNX's function adds 1e-9 to the deviation
      double value = (static_cast<double>(x[i]) - mean[g]) / (std::sqrt(square[g]) + 1e-9);
      data_of<T>(y)[i] = static_cast<T>(value);
    });
    return {};
  });
}

Result<std::vector<Value>> mvn_decompose(EditView edit, Node node) {
  std::vector<int64_t> axes = node.attr_ints("axes");
  if (node.attr("axes").tag == TN_ANY_NONE) axes = {0, 2, 3};
  Value x = node.input(0);
  Builder b(edit);
  Value over = b.ints(axes), away = b.sub(x, b.op("ReduceMean", {x, over}));
  Value variance = b.op("ReduceMean", {b.mul(away, away), over});
  Value y = b.div(away, b.add(root(b, variance), b.number(1e-9, x.dtype())));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> mvn_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {2, random.integer(1, 3), 3, random.integer(2, 4)}));
  std::vector<int64_t> axes{1, -1};
  std::vector<Attr> attrs;
  if (random.coin()) attrs.emplace_back("axes", axes);
  return edit.add({.type = "MeanVarianceNormalization", .inputs = {x}, .attrs = attrs});
}

OpCost norm_cost(Node node) {
  return {4 * output_elements(node), node_bytes(node)};
}

constexpr tn_op kLp = op_row({.type = "LpNormalization",
                              .since = 22,
                              .axes = "p.. d~ r.. -> p.. d r.. ; p = axis",
                              .attributes = R"([{"name": "axis", "type": "int", "default": -1},
                                                {"name": "p", "type": "int", "default": 2}])",
                              .shape = shape<same_shape, "x: float">,
                              .decompose = decompose<lp_decompose>,
                              .cost = cost<norm_cost>,
                              .ref = ref<lp_ref>,
                              .sample = sample<lp_sample>,
                              .cast = "cuda=fp32"});
constexpr tn_op kMvn = op_row({.type = "MeanVarianceNormalization",
                               .since = 13,
                               .attributes = R"([{"name": "axes", "type": "ints"}])",
                               .shape = shape<same_shape, "x: float">,
                               .decompose = decompose<mvn_decompose>,
                               .cost = cost<norm_cost>,
                               .ref = ref<mvn_ref>,
                               .sample = sample<mvn_sample>});
}  // namespace

TENON_OPS(lp_norm, &kLp, &kMvn)

}  // namespace tenon::ops
