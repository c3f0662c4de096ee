// SPDX-License-Identifier: Apache-2.0
// tenon:SumTo(x, shape): the sum over whatever broadcasting from `shape` to x's shape has repeated:
// the gradient of a broadcast whose sizes are not known. tenon:StopGradient: x, to gradients a
// constant.
#include "tenon/wrapping.hpp"

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status sum_to_shape(EditView edit, Node node) {
  std::optional<Dims> dims = contents(node.input(1));
  uint32_t dtype = node.input(0).dtype();
  return set_output(edit, node, 0, dims ? type_of(dtype, *dims) : unranked(dtype));
}
Status sum_to_ref(const Call& call) {
  std::span<const int64_t> in = call.shape(0);
  TN_TRY(shape, read_shape(call.in(1), "shape"));
  std::vector<int64_t> own = dense_strides(shape);
  if (shape.size() > in.size())
    return invalid(cat("shape: expected a rank of at most ", in.size(), ", got ", shape.size()));
  std::vector<int64_t> strides(in.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    size_t at = in.size() - shape.size() + i;
    if (shape[i] != in[at] && shape[i] != 1)
      return invalid(cat("shape: axis ", i, ": expected ", in[at], " or 1, got ", shape[i]));
    strides[at] = shape[i] == 1 ? 0 : own[i];
  }
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  return dispatch<kNumeric>(call.dtype(0), [&]<class T>() -> Status {
    std::vector<Wide<T>> sums(static_cast<size_t>(element_count(shape)));
    Odometer at(in);
    for (int64_t i = 0, n = element_count(in); i < n; ++i, at.next()) {
      Wide<T>& sum = sums[static_cast<size_t>(at.dot(strides))];
      sum = wrapping_add(sum, static_cast<Wide<T>>(call.data<T>(0)[i]));
    }
    for (size_t i = 0; i < sums.size(); ++i)
      data_of<T>(out)[i] = static_cast<T>(sums[i]);
    return {};
  });
}
Status sum_to_vjp(Gradients& g) {
  g.set(0, g.expand_like(g.cotangent(), g.in(0)));
  return {};
}
Result<Node> sum_to_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(shape, edit.ints(random.broadcastable(dims)));
  return edit.add({.type = "SumTo", .inputs = {x, shape}, .domain = "tenon"});
}

// Axes of one stand where x has more axes than the shape.
Status sum_to_batch(Batching& b) {
  if (b.batched(1)) return unsupported("shape: expected the same for all examples");
  size_t rank = b.ranked(b.of().input(0), "SumTo").rank();
  size_t out = b.ranked(b.of().output(), "SumTo").rank();
  Value shape =
      b.op("Concat", {b.ints(std::vector<int64_t>(rank - out, 1)), b.in(1)}, {{"axis", 0}});
  Node sum = b.node({.type = "SumTo",
                     .inputs = {b.in(0), b.op("Concat", {example_count(b), shape}, {{"axis", 0}})},
                     .domain = "tenon"});
  if (!sum) return {};
  std::vector<int64_t> ones;
  for (size_t i = out; i < rank; ++i)
    ones.push_back(static_cast<int64_t>(i - out + 1));
  b.set(0, ones.empty() ? sum.output() : b.op("Squeeze", {sum.output(), b.ints(ones)}));
  return {};
}

Status stop_shape(EditView edit, Node node) {
  return same_as_input(edit, node);
}
Status stop_ref(const Call& call) {
  return copy_as(call, call.shape(0));
}
Status stop_vjp(Gradients&) {
  return {};
}
Result<Node> stop_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(0, 3)));
  return edit.add({.type = "StopGradient", .inputs = {x}, .domain = "tenon"});
}

constexpr tn_op kSumTo = op_row({.type = "SumTo",
                                 .domain = "tenon",
                                 .shape = shape<sum_to_shape, "x: any, shape: int[n]">,
                                 .cost = cost<move_cost>,
                                 .ref = ref<sum_to_ref>,
                                 .sample = sample<sum_to_sample>,
                                 .vjp = vjp<sum_to_vjp>,
                                 .vjp_inputs = 2,
                                 .vjp_outputs = 0,
                                 .batch = batch<sum_to_batch>});
constexpr tn_op kStop = op_row({.type = "StopGradient",
                                .domain = "tenon",
                                .traits = TN_OP_VIEW,
                                .axes = "s.. -> s..",
                                .shape = shape<stop_shape, "x: any">,
                                .cost = cost<move_cost>,
                                .ref = ref<stop_ref>,
                                .sample = sample<stop_sample>,
                                .vjp = vjp<stop_vjp>,
                                .vjp_inputs = 0,
                                .vjp_outputs = 0});

}  // namespace

TENON_OPS(broadcasting, &kSumTo, &kStop)

}  // namespace tenon::ops
