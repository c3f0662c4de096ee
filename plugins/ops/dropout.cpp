// SPDX-License-Identifier: Apache-2.0
// Dropout. In inference it is the identity; in training each element is kept with probability
// 1 - ratio and scaled by its inverse.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "random.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status dropout_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  TN_CHECK(set_output(edit, node, 0, x));
  x.dtype = TN_BOOL;
  return set_output(edit, node, 1, x);
}

Result<double> ratio_of(const Call& call) {
  double ratio = 0.5;
  if (call.has(1)) {
    TN_CHECK(dispatch<kFloats>(call.dtype(1), [&]<class T>() -> Status {
      ratio = static_cast<double>(*call.data<T>(1));
      return {};
    }));
  }
  if (!(ratio >= 0 && ratio < 1))
    return invalid(cat("ratio: expected a number in 0..1, 1 excluded, got ", ratio));
  return ratio;
}

Status dropout_ref(const Call& call) {
  TN_TRY(ratio, ratio_of(call));
  bool training = call.has(2) && *call.data<uint8_t>(2) != 0;
  int64_t n = element_count(call.in(0));
  bool* mask = nullptr;
  if (call.node().n_outputs() > 1) {
    TN_TRY(second, call.out(1, TN_BOOL, call.shape(0)));
    mask = data_of<bool>(second);
  }
  if (!training || ratio == 0) {
    if (mask) std::fill(mask, mask + n, true);
    return copy_as(call, call.shape(0));
  }
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  std::vector<double> draws = Random::of_node(call.node()).uniform(0, n);
  return dispatch<kFloats>(call.dtype(0), [&]<class T>() -> Status {
    for (int64_t i = 0; i < n; ++i) {
      bool keep = draws[static_cast<size_t>(i)] >= ratio;
      double value = keep ? static_cast<double>(call.data<T>(0)[i]) / (1 - ratio) : 0;
      data_of<T>(out)[i] = static_cast<T>(value);
      if (mask) mask[i] = keep;
    }
    return {};
  });
}

Result<Node> dropout_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(1, 3)));
  std::vector<Value> inputs{x};
  if (random.coin()) {
    TN_TRY(ratio, edit.constant<float>(TN_F32, {}, {0.25f}));
    TN_TRY(training, edit.constant<uint8_t>(TN_BOOL, {}, {random.coin()}));
    inputs.insert(inputs.end(), {ratio, training});
  }
  return edit.add({.type = "Dropout",
                   .inputs = inputs,
                   .attrs = {{"seed", static_cast<int64_t>(seed)}},
                   .n_outputs = uint64_t(random.integer(1, 2))});
}

// Scaled where the drawn number is not below the ratio; in inference, what came in.
Result<std::vector<Value>> dropout_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0), training = node.input(2);
  Value yes =
      b.op("Expand", {b.op("Equal", {b.number(0, TN_F32), b.number(0, TN_F32)}), b.shape_of(x)});
  if (!training) {
    std::vector<Value> out{b.op("Identity", {x}), yes};
    out.resize(node.n_outputs());
    TN_CHECK(b.status());
    return out;
  }
  Value ratio = node.input(1) ? b.cast(node.input(1), TN_F32) : b.number(0.5, TN_F32);
  ratio = b.op("Where", {training, ratio, b.number(0, TN_F32)});
  Value drawn =
      b.op("RandomUniformLike", {x}, {{"seed", seed_of(node)}, {"dtype", any_dtype(TN_F32)}});
  Value keep = b.op("GreaterOrEqual", {drawn, ratio});
  Value kept = b.cast(b.sub(b.number(1, TN_F32), ratio), x.dtype());
  Value y = b.op("Where", {keep, b.div(x, kept), b.number(0, x.dtype())});
  TN_CHECK(b.status());
  std::vector<Value> out{y, keep};
  out.resize(node.n_outputs());
  return out;
}

constexpr tn_op kDropout =
    op_row({.type = "Dropout",
            .since = 22,
            .traits = TN_OP_RANDOM,
            .attributes = R"([{"name": "seed", "type": "int"}])",
            .quant = "same_scale",
            .shape = shape<dropout_shape, "x: float, ratio: float[one]?, training: bool[one]?">,
            .decompose = decompose<dropout_decompose>,
            .cost = cost<move_cost>,
            .ref = ref<dropout_ref>,
            .sample = sample<dropout_sample>,
            .recompute = "never",
            .coupling = "same"});

}  // namespace

TENON_OPS(dropout, &kDropout)

}  // namespace tenon::ops
