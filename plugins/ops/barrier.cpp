// SPDX-License-Identifier: Apache-2.0
// tenon:Barrier(x, after...): x, no sooner than the others are there. What is computed from it is
// another value than what is computed from x, so neither is taken for the other: that is how
// something is computed twice (plugins/autodiff).
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status barrier_shape(EditView edit, Node node) {
  return same_as_input(edit, node);
}

Status barrier_ref(const Call& call) {
  return copy_as(call, call.shape(0));
}

Result<std::vector<Value>> barrier_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value y = b.op("Identity", {node.input(0)});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Status barrier_vjp(Gradients& g) {
  g.set(0, g.cotangent());
  return {};
}

Status barrier_batch(Batching& b) {
  std::vector<Value> inputs;
  for (uint64_t i = 0; i < b.of().n_inputs(); ++i)
    inputs.push_back(b.in(i));
  Node made = b.node({.type = "Barrier", .inputs = inputs, .domain = "tenon"});
  TN_CHECK(b.status());
  b.set(0, made.output(), b.batched(0));
  return {};
}

Result<Node> barrier_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(0, 3)));
  TN_TRY(after, random.input(TN_F32, random.shape(0, 2)));
  return edit.add({.type = "Barrier", .inputs = {x, after}, .domain = "tenon"});
}

constexpr tn_op kBarrier = op_row({.type = "Barrier",
                                   .domain = "tenon",
                                   .quant = "same_scale",
                                   .shape = shape<barrier_shape, "x: any, after: any...">,
                                   .decompose = decompose<barrier_decompose>,
                                   .cost = cost<move_cost>,
                                   .ref = ref<barrier_ref>,
                                   .sample = sample<barrier_sample>,
                                   .vjp = vjp<barrier_vjp>,
                                   .vjp_inputs = 0,
                                   .vjp_outputs = 0,
                                   .batch = batch<barrier_batch>,
                                   .cast = "cpu=keep cuda=keep",
                                   .recompute = "never",
                                   .coupling = "same"});

}  // namespace

TENON_OPS(barrier, &kBarrier)

}  // namespace tenon::ops
