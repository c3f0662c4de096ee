// SPDX-License-Identifier: Apache-2.0
// Transpose, DepthToSpace and SpaceToDepth: the same elements in another order.
#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Result<std::vector<int64_t>> permutation(Node node, size_t rank) {
  std::vector<int64_t> perm = node.attr_ints("perm");
  if (perm.empty()) {
    for (size_t i = rank; i-- > 0;)
      perm.push_back(static_cast<int64_t>(i));
  }
  if (perm.size() != rank) {
    return invalid(cat("perm: expected ", rank, " axes, got ", perm.size()));
  }
  std::vector<bool> seen(rank, false);
  for (int64_t& axis : perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank))
      return invalid(cat("perm: expected axes in 0..", rank - 1, ", got ", axis));
    if (seen[static_cast<size_t>(axis)])
      return invalid(cat("perm: axis ", axis, " is there twice"));
    seen[static_cast<size_t>(axis)] = true;
  }
  return perm;
}

// Writes `in`, seen as `view`, with its axes in the order of perm.
Status permute(const Call& call,
               std::span<const int64_t> view,
               const std::vector<int64_t>& perm,
               std::span<const int64_t> out_shape) {
  TN_TRY(out, call.out(0, call.dtype(0), out_shape));
  std::vector<int64_t> strides = dense_strides(view);
  Walk walk;
  for (int64_t axis : perm) {
    walk.shape.push_back(view[static_cast<size_t>(axis)]);
    walk.from_strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  walk.to_strides = dense_strides(walk.shape);
  Cells from(call.in(0)), to(out);
  copy_walk(call.ctx(), walk, from, to);
  to.flush();
  return {};
}

Status transpose_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  TN_TRY(perm, permutation(node, x.rank()));
  Dims in = dims_of(x), out;
  for (int64_t axis : perm)
    out.push_back(in[static_cast<size_t>(axis)]);
  return set_output(edit, node, 0, x.dtype, out);
}

Status transpose_ref(const Call& call) {
  TN_TRY(perm, permutation(call.node(), call.shape(0).size()));
  std::vector<int64_t> out;
  for (int64_t axis : perm)
    out.push_back(call.shape(0)[static_cast<size_t>(axis)]);
  return permute(call, call.shape(0), perm, out);
}

Result<Node> transpose_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4), perm;
  TN_TRY(x, random.input(TN_F32, dims));
  for (size_t i = 0; i < dims.size(); ++i)
    perm.insert(perm.begin() + random.integer(0, static_cast<int64_t>(i)), static_cast<int64_t>(i));
  return edit.add({.type = "Transpose", .inputs = {x}, .attrs = {{"perm", perm}}});
}

Result<int64_t> block_of(Node node) {
  int64_t block = node.attr_int("blocksize");
  constexpr int64_t kMost = int64_t{1} << 15;
  if (block < 1 || block > kMost)
    return invalid(cat("blocksize: expected a number from 1 to ", kMost, ", got ", block));
  return block;
}

Status depth_to_space_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  if (x.rank() != 4) return invalid(cat("x: expected rank 4, got ", x.rank()));
  TN_TRY(block, block_of(node));
  Dims in = dims_of(x);
  if (in[1].known() && *in[1].value % (block * block) != 0)
    return invalid(
        cat("x: expected channels divisible by ", block * block, ", got ", *in[1].value));
  return set_output(edit, node, 0, x.dtype,
                    {in[0], floor_divide(in[1], block * block), in[2] * block, in[3] * block});
}

Status depth_to_space_ref(const Call& call) {
  TN_TRY(b, block_of(call.node()));
  std::span<const int64_t> s = call.shape(0);
  if (s.size() != 4 || s[1] % (b * b) != 0) return invalid("x: expected n, c*b*b, h, w");
  int64_t c = s[1] / (b * b);
  std::vector<int64_t> out{s[0], c, s[2] * b, s[3] * b};
  if (call.node().attr_text("mode", "DCR") == "CRD")
    return permute(call, std::vector<int64_t>{s[0], c, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, out);
  return permute(call, std::vector<int64_t>{s[0], b, b, c, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, out);
}

Status space_to_depth_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  if (x.rank() != 4) return invalid(cat("x: expected rank 4, got ", x.rank()));
  TN_TRY(block, block_of(node));
  Dims in = dims_of(x);
  for (size_t axis : {2u, 3u}) {
    if (in[axis].known() && *in[axis].value % block != 0)
      return invalid(cat("x: expected axis ", axis, " divisible by ", block));
  }
  return set_output(
      edit, node, 0, x.dtype,
      {in[0], in[1] * Dim(block * block), floor_divide(in[2], block), floor_divide(in[3], block)});
}

Status space_to_depth_ref(const Call& call) {
  TN_TRY(b, block_of(call.node()));
  std::span<const int64_t> s = call.shape(0);
  if (s.size() != 4 || s[2] % b || s[3] % b) return invalid("x: expected n, c, h*b, w*b");
  std::vector<int64_t> view{s[0], s[1], s[2] / b, b, s[3] / b, b};
  std::vector<int64_t> out{s[0], s[1] * b * b, s[2] / b, s[3] / b};
  if (call.node().attr_text("mode", "DCR") == "CRD")
    return permute(call, view, {0, 1, 3, 5, 2, 4}, out);
  return permute(call, view, {0, 3, 5, 1, 2, 4}, out);
}

Result<Node> depth_to_space_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t b = random.integer(1, 3);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 2), b * b * random.integer(1, 3),
                                  random.integer(1, 3), random.integer(1, 3)}));
  return edit.add({.type = "DepthToSpace",
                   .inputs = {x},
                   .attrs = {{"blocksize", b}, {"mode", random.coin() ? "CRD" : "DCR"}}});
}
Result<Node> space_to_depth_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t b = random.integer(1, 3);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 2), random.integer(1, 3),
                                  b * random.integer(1, 3), b * random.integer(1, 3)}));
  return edit.add({.type = "SpaceToDepth",
                   .inputs = {x},
                   .attrs = {{"blocksize", b}, {"mode", random.coin() ? "CRD" : "DCR"}}});
}

Status transpose_vjp(Gradients& g) {
  Type x = g.ranked(g.in(0), "Transpose");
  TN_TRY(perm, permutation(g.of(), x.rank()));
  std::vector<int64_t> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  g.set(0, g.transpose(g.cotangent(), back));
  return {};
}
// The two undo each other.
Status depth_space_vjp(Gradients& g) {
  g.set(0, g.op(g.of().is("DepthToSpace") ? "SpaceToDepth" : "DepthToSpace", {g.cotangent()},
                {{"blocksize", g.of().attr_int("blocksize")},
                 {"mode", g.of().attr_text("mode", "DCR")}}));
  return {};
}

Status transpose_batch(Batching& b) {
  TN_TRY(perm, permutation(b.of(), b.ranked(b.of().input(0), "Transpose").rank()));
  std::vector<int64_t> whole = shifted(perm, perm.size());
  whole.insert(whole.begin(), 0);
  b.set(0, b.transpose(b.in(0), whole));
  return {};
}

constexpr tn_op kTranspose = op_row({.type = "Transpose",
                                     .since = 25,
                                     .attributes = R"([{"name": "perm", "type": "ints"}])",
                                     .quant = "same_scale",
                                     .shape = shape<transpose_shape, "x: any">,
                                     .cost = cost<move_cost>,
                                     .ref = ref<transpose_ref>,
                                     .sample = sample<transpose_sample>,
                                     .vjp = vjp<transpose_vjp>,
                                     .vjp_inputs = 0,
                                     .vjp_outputs = 0,
                                     .batch = batch<transpose_batch>,
                                     .coupling = "permute perm=perm"});
constexpr tn_op kDepthToSpace = op_row({.type = "DepthToSpace",
                                        .since = 13,
                                        .attributes = R"([{"name": "blocksize", "type": "int"},
                              {"name": "mode", "type": "string", "default": "DCR"}])",
                                        .quant = "same_scale",
                                        .shape = shape<depth_to_space_shape, "x: any[n c h w]">,
                                        .cost = cost<move_cost>,
                                        .ref = ref<depth_to_space_ref>,
                                        .sample = sample<depth_to_space_sample>,
                                        .vjp = vjp<depth_space_vjp>,
                                        .vjp_inputs = 0,
                                        .vjp_outputs = 0,
                                        .batch = batch<batch_by_rows>});
constexpr tn_op kSpaceToDepth = op_row({.type = "SpaceToDepth",
                                        .since = 13,
                                        .attributes = R"([{"name": "blocksize", "type": "int"},
 {"name": "mode", "type": "string", "default": "DCR"}])",
                                        .quant = "same_scale",
                                        .shape = shape<space_to_depth_shape, "x: any[n c h w]">,
                                        .cost = cost<move_cost>,
                                        .ref = ref<space_to_depth_ref>,
                                        .sample = sample<space_to_depth_sample>,
                                        .vjp = vjp<depth_space_vjp>,
                                        .vjp_inputs = 0,
                                        .vjp_outputs = 0,
                                        .batch = batch<batch_by_rows>});

}  // namespace

TENON_OPS(transpose, &kTranspose, &kDepthToSpace, &kSpaceToDepth)

}  // namespace tenon::ops
