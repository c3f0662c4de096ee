// SPDX-License-Identifier: Apache-2.0
// Expand and Tile: elements repeated along axes.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status expand_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  std::optional<Dims> wanted = contents(node.input(1));
  if (!x.ranked || !wanted) return set_output(edit, node, 0, unranked(x.dtype));
  Dims in = dims_of(x), out = *wanted;
  if (in.size() > out.size()) out.insert(out.begin(), in.size() - out.size(), 1);
  for (size_t i = 0; i < in.size(); ++i) {
    Dim& dim = out[out.size() - in.size() + i];
    std::optional<Dim> both = broadcast(dim, in[i]);
    if (!both) {
      return invalid(
          cat("shape: expected ", *in[i].value, " or 1 for axis ", i, ", got ", *dim.value));
    }
    dim = *both;
  }
  return set_output(edit, node, 0, x.dtype, out);
}

Status expand_ref(const Call& call) {
  std::vector<int64_t> in = to_vector(call.shape(0));
  TN_TRY(out, read_shape(call.in(1), "shape"));
  if (in.size() > out.size()) out.insert(out.begin(), in.size() - out.size(), 1);
  std::vector<int64_t> strides = dense_strides(in);
  Walk walk;
  walk.from_strides.assign(out.size(), 0);
  for (size_t i = 0; i < in.size(); ++i) {
    size_t at = out.size() - in.size() + i;
    if (out[at] != in[i] && out[at] != 1 && in[i] != 1)
      return invalid(cat("shape: expected ", in[i], " or 1 for axis ", i, ", got ", out[at]));
    if (out[at] == 1) out[at] = in[i];
    walk.from_strides[at] = in[i] == 1 ? 0 : strides[i];
  }
  walk.shape = out;
  walk.to_strides = dense_strides(out);
  TN_TRY(result, call.out(0, call.dtype(0), out));
  Cells from(call.in(0)), to(result);
  copy_walk(call.ctx(), walk, from, to);
  to.flush();
  return {};
}

Result<Node> expand_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  TN_TRY(x, random.input(TN_F32, random.broadcastable(dims)));
  TN_TRY(shape, edit.ints(dims));
  return edit.add({.type = "Expand", .inputs = {x, shape}});
}

Status tile_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  Dims out = dims_of(x);
  std::optional<Dims> repeats = contents(node.input(1));
  if (repeats && repeats->size() != out.size())
    return invalid(cat("repeats: expected ", out.size(), " numbers, got ", repeats->size()));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = repeats ? out[i] * (*repeats)[i] : Dim();
  return set_output(edit, node, 0, x.dtype, out);
}

Status tile_ref(const Call& call) {
  std::vector<int64_t> in = to_vector(call.shape(0)), repeats = read_ints(call.in(1)), out;
  if (repeats.size() != in.size())
    return invalid(cat("repeats: expected ", in.size(), " numbers, got ", repeats.size()));
  std::vector<int64_t> strides = dense_strides(in);
  Walk walk;
  for (size_t i = 0; i < in.size(); ++i) {
    if (repeats[i] < 0) return invalid(cat("repeats: expected numbers from 0, got ", repeats[i]));
    int64_t size = 0;
    if (__builtin_mul_overflow(in[i], repeats[i], &size))
      return invalid(cat("repeats: axis ", i, " of ", in[i], " times ", repeats[i],
                         " is more than an axis can have"));
    out.push_back(size);
    walk.shape.insert(walk.shape.end(), {repeats[i], in[i]});
    walk.from_strides.insert(walk.from_strides.end(), {0, strides[i]});
  }
  walk.to_strides = dense_strides(walk.shape);
  TN_TRY(result, call.out(0, call.dtype(0), out));
  Cells from(call.in(0)), to(result);
  copy_walk(call.ctx(), walk, from, to);
  to.flush();
  return {};
}

Result<Node> tile_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4), repeats;
  for (size_t i = 0; i < dims.size(); ++i)
    repeats.push_back(random.integer(1, 3));
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(times, edit.ints(repeats));
  return edit.add({.type = "Tile", .inputs = {x, times}});
}

// As large as the output: whoever asked sums.
Status expand_vjp(Gradients& g) {
  g.set(0, g.cotangent());
  return {};
}
Status tile_vjp(Gradients& g) {
  Type x = g.fixed(g.in(0), "Tile"), y = g.fixed(g.out(), "Tile");
  if (!x.ranked || !y.ranked) return {};
  std::vector<int64_t> split, copies;
  for (size_t i = 0; i < x.rank(); ++i) {
    copies.push_back(static_cast<int64_t>(2 * i));
    split.insert(split.end(), {x.dims[i] ? y.dims[i] / x.dims[i] : 1, x.dims[i]});
  }
  g.set(0, g.sum(g.reshape(g.cotangent(), split), copies, false));
  return {};
}

// The shape of one example, as long as the result's rank, behind the number of examples.
Status expand_batch(Batching& b) {
  size_t rank = b.ranked(b.of().input(0), "Expand").rank();
  size_t out = b.ranked(b.of().output(), "Expand").rank();
  if (b.batched(1)) return unsupported("shape: expected the same for all examples");
  Value x = b.in(0);
  std::vector<int64_t> ones;
  for (size_t i = rank; i < out; ++i)
    ones.push_back(static_cast<int64_t>(i - rank + 1));
  if (!ones.empty()) x = b.op("Unsqueeze", {x, b.ints(ones)});
  // Of the inputs alone: what asks the old output for its shape keeps what was before it alive.
  Type y = b.of().output().type(), wanted = b.of().input(1).type();
  if (!y.is_static() && !wanted.is_static())
    return unsupported("shape: expected a known number of axes");
  Value shape = y.is_static() ? b.ints(y.dims) : b.in(1);
  if (!y.is_static() && out > static_cast<size_t>(wanted.elements())) {
    std::vector<int64_t> kept(out - static_cast<size_t>(wanted.elements()), 1);
    shape = b.op("Concat", {b.ints(kept), shape}, {{"axis", 0}});
  }
  b.set(0, b.op("Expand", {x, b.op("Concat", {example_count(b), shape}, {{"axis", 0}})}));
  return {};
}
Status tile_batch(Batching& b) {
  if (b.batched(1)) return unsupported("repeats: expected the same for all examples");
  Value repeats = b.op("Concat", {b.ints({1}), b.in(1)}, {{"axis", 0}});
  b.set(0, b.op("Tile", {b.in(0), repeats}));
  return {};
}

constexpr tn_op kExpand = op_row({.type = "Expand",
                                  .since = 13,
                                  .quant = "same_scale",
                                  .shape = shape<expand_shape, "x: any, shape: int[n]">,
                                  .cost = cost<move_cost>,
                                  .ref = ref<expand_ref>,
                                  .sample = sample<expand_sample>,
                                  .vjp = vjp<expand_vjp>,
                                  .vjp_inputs = 0,
                                  .vjp_outputs = 0,
                                  .batch = batch<expand_batch>,
                                  .coupling = "same sizes=1"});
constexpr tn_op kTile = op_row({.type = "Tile",
                                .since = 13,
                                .quant = "same_scale",
                                .shape = shape<tile_shape, "x: any[r..], repeats: int[_]">,
                                .cost = cost<move_cost>,
                                .ref = ref<tile_ref>,
                                .sample = sample<tile_sample>,
                                .vjp = vjp<tile_vjp>,
                                .vjp_inputs = 0,
                                .vjp_outputs = 0,
                                .batch = batch<tile_batch>});

}  // namespace

TENON_OPS(expand, &kExpand, &kTile)

}  // namespace tenon::ops
