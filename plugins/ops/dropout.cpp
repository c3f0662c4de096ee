// SPDX-License-Identifier: Apache-2.0
// Dropout. In inference it is the identity; in training each element is kept with probability
// 1 - ratio and scaled by its inverse.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "examples.hpp"
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
  bool training = call.has(2) && *call.data<bool>(2);
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
  return edit.add({.type = "Dropout", .inputs = {x}, .n_outputs = uint64_t(random.integer(1, 2))});
}

// By the mask that was drawn; where there is none, training must be known to be off.
Status dropout_vjp(Gradients& g) {
  Value dy = g.cotangent();
  if (!dy) return {};
  if (!g.in(2)) {
    g.set(0, dy);
    return {};
  }
  if (!g.out(1)) return unsupported("training: expected the output mask, which the gradient needs");
  Value ratio = g.in(1) ? g.cast(g.in(1), dy.dtype()) : g.number(0.5, dy.dtype());
  // Not training: the mask is all ones, and nothing was scaled.
  ratio = g.op("Where", {g.in(2), ratio, g.number(0, dy.dtype())});
  Value scaled = g.div(dy, g.sub(g.number(1, dy.dtype()), ratio));
  g.set(0, g.op("Where", {g.out(1), scaled, g.number(0, dy.dtype())}));
  return {};
}

// Off, it passes each example on; on, each would need numbers of its own.
Status dropout_batch(Batching& b) {
  if (b.in(2))
    return invalid("random numbers under vmap: draw the mask outside, or give no training input");
  Node made = again(b, b.of(), {b.in(0)});
  for (uint64_t i = 0; made && i < b.of().n_outputs(); ++i)
    b.set(i, made.output(i));
  return {};
}

constexpr tn_op kDropout = op_row({.type = "Dropout",
                                   .since = 22,
                                   .traits = TN_OP_RANDOM,
                                   .attributes = R"([{"name": "seed", "type": "int"}])",
                                   .quant = "same_scale",
                                   .shape = shape<dropout_shape>,
                                   .cost = cost<move_cost>,
                                   .ref = ref<dropout_ref>,
                                   .sample = sample<dropout_sample>,
                                   .vjp = vjp<dropout_vjp>,
                                   .vjp_inputs = 6,
                                   .vjp_outputs = 2,
                                   .batch = batch<dropout_batch>,
                                   .recompute = "never"});

}  // namespace

TENON_OPS(dropout, &kDropout)

}  // namespace tenon::ops
