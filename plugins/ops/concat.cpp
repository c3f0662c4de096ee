// SPDX-License-Identifier: Apache-2.0
// Concat and Split.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status concat_contents(EditView edit, Node node) {
  Dims all;
  for (Value input : node.inputs()) {
    std::optional<Dims> part = contents(input);
    if (!part) return set_contents(edit, node.output(), {});
    all.insert(all.end(), part->begin(), part->end());
  }
  return set_contents(edit, node.output(), all);
}

Status concat_shape(EditView edit, Node node) {
  Type first = node.input(0).type();
  Dims out;
  Dim sum = 0;
  for (Value input : node.inputs()) {
    Type type = input.type();
    if (!type.ranked) return set_output(edit, node, 0, unranked(first.dtype));
    Dims dims = dims_of(type);
    if (out.empty()) out = dims;
    if (dims.size() != out.size())
      return invalid(cat("expected inputs of one rank, got ", out.size(), " and ", dims.size()));
    TN_TRY(axis, axis_in(node.attr_int("axis"), dims.size()));
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i == static_cast<size_t>(axis)) continue;
      if (out[i].known() && dims[i].known() && !(out[i] == dims[i]))
        return invalid(cat("axis ", i, ": expected ", *out[i].value, ", got ", *dims[i].value));
      if (dims[i].known()) out[i] = dims[i];
    }
    sum = sum + dims[static_cast<size_t>(axis)];
    out[static_cast<size_t>(axis)] = sum;
  }
  TN_CHECK(set_output(edit, node, 0, first.dtype, out));
  return out.size() == 1 ? concat_contents(edit, node) : Status();
}

Status concat_ref(const Call& call) {
  std::vector<int64_t> shape = to_vector(call.shape(0));
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), shape.size()));
  auto at_axis = static_cast<size_t>(axis);
  for (uint64_t i = 1; i < call.n_in(); ++i) {
    std::vector<int64_t> next = to_vector(call.shape(i));
    if (next.size() != shape.size())
      return invalid(cat("input ", i, ": expected rank ", shape.size(), ", got ", next.size()));
    for (size_t d = 0; d < next.size(); ++d) {
      if (d != at_axis && next[d] != shape[d])
        return invalid(cat("input ", i, " axis ", d, ": expected ", shape[d], ", got ", next[d]));
    }
    shape[at_axis] += next[at_axis];
  }
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  Cells to(out);
  AxisSplit whole(shape, axis);
  int64_t at = 0;
  for (uint64_t i = 0; i < call.n_in(); ++i) {
    Cells from(call.in(i));
    int64_t run = call.shape(i)[at_axis] * whole.inner;
    for (int64_t o = 0; o < whole.outer; ++o)
      to.copy(o * whole.size * whole.inner + at, from, o * run, run);
    at += run;
  }
  to.flush();
  return {};
}

Result<Node> concat_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  int64_t rank = static_cast<int64_t>(dims.size()), axis = random.integer(-rank, rank - 1);
  std::vector<Value> inputs;
  for (int64_t i = random.integer(1, 3); i > 0; --i) {
    dims[static_cast<size_t>(positive_axis(axis, dims.size()))] = random.integer(1, 4);
    TN_TRY(x, random.input(TN_F32, dims));
    inputs.push_back(x);
  }
  return edit.add({.type = "Concat", .inputs = inputs, .attrs = {{"axis", axis}}});
}

// Sizes of the parts: stated, or as even as can be with a smaller last one.
Result<Dims> part_sizes(const Dim& size,
                        const std::optional<Dims>& stated,
                        bool has_split,
                        uint64_t n) {
  if (has_split) {
    if (!stated) return Dims(n);
    if (stated->size() != n)
      return invalid(cat("split: expected ", n, " sizes, got ", stated->size()));
    Dim sum = 0;
    for (const Dim& part : *stated) {
      if (part.known() && *part.value < 0) return invalid("split: expected sizes from 0");
      sum = sum + part;
    }
    if (sum.known() && size.known() && !(sum == size))
      return invalid(
          cat("split: expected sizes that add up to ", *size.value, ", got ", *sum.value));
    return *stated;
  }
  auto parts = static_cast<int64_t>(n);
  if (!size.known()) return Dims(n, parts == 1 ? size : floor_divide(size, parts));
  int64_t each = (*size.value + parts - 1) / parts;
  Dims out(n, each);
  out.back() = *size.value - each * (parts - 1);
  if (*out.back().value < 0)
    return invalid(cat("cannot split ", *size.value, " into ", n, " parts"));
  return out;
}

Status split_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  uint64_t n = node.n_outputs();
  if (const auto stated = node.attr_int("num_outputs"); stated != 0 && stated != int64_t(n))
    return invalid(cat("num_outputs: expected ", n, ", the number of outputs, got ", stated));
  if (!x.ranked) {
    for (uint64_t i = 0; i < n; ++i)
      TN_CHECK(set_output(edit, node, i, x));
    return {};
  }
  TN_TRY(axis, axis_in(node.attr_int("axis"), x.rank()));
  Dims dims = dims_of(x);
  Dim& at_axis = dims[static_cast<size_t>(axis)];
  // A branch that is never taken may split what does not divide: that is an error only when it
  // runs.
  bool too_many =
      !node.input(1) && at_axis.known() &&
      (*at_axis.value + int64_t(n) - 1) / int64_t(n) * (int64_t(n) - 1) > *at_axis.value;
  if (too_many) at_axis = Dim();
  TN_TRY(sizes, part_sizes(at_axis, contents(node.input(1)), bool(node.input(1)), n));
  // An even split of an unknown size is exact only when it divides; that is not known.
  bool guessed = !node.input(1) && n > 1 && !at_axis.known();
  for (uint64_t i = 0; i < n; ++i) {
    at_axis = guessed ? Dim() : sizes[i];
    TN_CHECK(set_output(edit, node, i, x.dtype, dims));
  }
  return {};
}

Status split_ref(const Call& call) {
  std::vector<int64_t> shape = to_vector(call.shape(0));
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), shape.size()));
  std::optional<Dims> stated;
  if (call.has(1)) {
    std::vector<int64_t> given = read_ints(call.in(1));
    stated.emplace(given.begin(), given.end());
  }
  AxisSplit whole(shape, axis);
  TN_TRY(sizes, part_sizes(whole.size, stated, call.has(1), call.node().n_outputs()));
  Cells from(call.in(0));
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    shape[static_cast<size_t>(axis)] = *sizes[i].value;
    TN_TRY(out, call.out(i, call.dtype(0), shape));
    Cells to(out);
    int64_t run = *sizes[i].value * whole.inner;
    for (int64_t o = 0; o < whole.outer; ++o)
      to.copy(o * run, from, o * whole.size * whole.inner + at, run);
    to.flush();
    at += run;
  }
  return {};
}

Result<Node> split_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4), sizes;
  int64_t axis = random.integer(0, static_cast<int64_t>(dims.size()) - 1), sum = 0;
  for (int64_t i = random.integer(1, 3); i > 0; --i) {
    sizes.push_back(random.integer(1, 3));
    sum += sizes.back();
  }
  dims[static_cast<size_t>(axis)] = sum;
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(split, edit.ints(sizes));
  return edit.add({.type = "Split",
                   .inputs = {x, split},
                   .attrs = {{"axis", axis}},
                   .n_outputs = sizes.size()});
}

Status concat_vjp(Gradients& g) {
  TN_TRY(axis, axis_in(g.of().attr_int("axis"), g.ranked(g.in(0), "Concat").rank()));
  std::vector<int64_t> sizes;
  for (Value input : g.of().inputs()) {
    Type type = g.ranked(input, "Concat");
    int64_t size = type.ranked ? type.dims[static_cast<size_t>(axis)] : -1;
    if (size < 0) return unsupported("the sizes along axis must be known; bind the shapes first");
    sizes.push_back(size);
  }
  Node parts = g.node({.type = "Split",
                       .inputs = {g.cotangent(), g.ints(sizes)},
                       .attrs = {{"axis", axis}},
                       .n_outputs = sizes.size()});
  for (uint64_t i = 0; parts && i < sizes.size(); ++i)
    if (g.wanted(i)) g.set(i, parts.output(i));
  return {};
}
Status split_vjp(Gradients& g) {
  std::vector<Value> parts;
  for (uint64_t i = 0; i < g.of().n_outputs(); ++i)
    parts.push_back(g.cotangent(i) ? g.cotangent(i) : g.zeros_like(g.out(i)));
  g.set(0, g.op("Concat", parts, {{"axis", g.of().attr_int("axis")}}));
  return {};
}

constexpr tn_op kConcat = op_row({.type = "Concat",
                                  .since = 13,
                                  .attributes = R"([{"name": "axis", "type": "int"}])",
                                  .quant = "requant",
                                  .shape = shape<concat_shape, "x: T...">,
                                  .cost = cost<move_cost>,
                                  .ref = ref<concat_ref>,
                                  .sample = sample<concat_sample>,
                                  .vjp = vjp<concat_vjp>,
                                  .vjp_inputs = 0,
                                  .vjp_outputs = 0,
                                  .batch = batch<batch_all_by_axis>,
                                  .cast = "cpu=promote cuda=promote",
                                  .coupling = "concat axis=axis"});
constexpr tn_op kSplit = op_row({.type = "Split",
                                 .since = 18,
                                 .attributes = R"([{"name": "axis", "type": "int", "default": 0},
                              {"name": "num_outputs", "type": "int"}])",
                                 .quant = "same_scale",
                                 .shape = shape<split_shape, "x: any, sizes: int[n]?">,
                                 .cost = cost<move_cost>,
                                 .ref = ref<split_ref>,
                                 .sample = sample<split_sample>,
                                 .vjp = vjp<split_vjp>,
                                 .vjp_inputs = 0,
                                 .vjp_outputs = 0,
                                 .batch = batch<batch_first_by_axis>,
                                 .coupling = "split axis=axis sizes=1 count=num_outputs"});

}  // namespace

TENON_OPS(concat, &kConcat, &kSplit)

}  // namespace tenon::ops
