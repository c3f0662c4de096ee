// SPDX-License-Identifier: Apache-2.0
// Tensors with a pattern: Trilu, EyeLike, OneHot; and NonZero, which finds one.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "numbers.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status same_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}

Status trilu_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  if (shape.size() < 2) return invalid(cat("x: expected rank from 2, got ", shape.size()));
  int64_t k = call.has(1) ? read_ints(call.in(1)).at(0) : 0;
  bool upper = call.node().attr_int("upper", 1) != 0;
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  Cells from(call.in(0)), to(out);
  int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  for (int64_t i = 0, n = element_count(shape); i < n; ++i) {
    int64_t off = i % columns - i / columns % rows;
    if (upper ? off >= k : off <= k)
      to.copy(i, from, i);
    else
      std::memset(to.at(i), 0, to.size());
  }
  to.flush();
  return {};
}
Result<Node> trilu_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(2, 4)));
  TN_TRY(k, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(-2, 2)}));
  return edit.add({.type = "Trilu", .inputs = {x, k}, .attrs = {{"upper", random.integer(0, 1)}}});
}

uint32_t eye_dtype(Node node, uint32_t fallback) {
  tn_any dtype = node.attr("dtype");
  return dtype.tag == TN_ANY_DTYPE ? static_cast<uint32_t>(dtype.v.u) : fallback;
}
Status eye_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  x.dtype = eye_dtype(node, x.dtype);
  return set_output(edit, node, 0, x);
}
Status eye_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  if (shape.size() != 2) return invalid(cat("x: expected rank 2, got ", shape.size()));
  uint32_t dtype = eye_dtype(call.node(), call.dtype(0));
  if (!is_supported(dtype)) return no_kernel(dtype);
  int64_t k = call.node().attr_int("k");
  TN_TRY(out, call.out(0, dtype, shape));
  for (int64_t i = 0, n = element_count(shape); i < n; ++i)
    store_number(data_of<char>(out), dtype, i, i % shape[1] - i / shape[1] == k ? 1 : 0);
  return {};
}
Result<Node> eye_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(2, 2)));
  return edit.add({.type = "EyeLike", .inputs = {x}, .attrs = {{"k", random.integer(-2, 2)}}});
}

Status one_hot_shape(EditView edit, Node node) {
  Type indices = node.input(0).type();
  uint32_t dtype = node.input(2).dtype();
  if (!indices.ranked) return set_output(edit, node, 0, unranked(dtype));
  Dims out = dims_of(indices);
  TN_TRY(axis, axis_in(node.attr_int("axis", -1), out.size() + 1));
  std::optional<Dims> depth = contents(node.input(1));
  out.insert(out.begin() + axis, depth && depth->size() == 1 ? (*depth)[0] : Dim());
  return set_output(edit, node, 0, dtype, out);
}
Status one_hot_ref(const Call& call) {
  std::vector<int64_t> shape = to_vector(call.shape(0));
  TN_TRY(axis, axis_in(call.node().attr_int("axis", -1), shape.size() + 1));
  if (!is_supported(call.dtype(0)) || !is_supported(call.dtype(1)) ||
      element_count(call.in(1)) != 1 || element_count(call.in(2)) != 2)
    return invalid("expected numbers, one depth and two values");
  auto depth = static_cast<int64_t>(load_number(call.data<char>(1), call.dtype(1), 0));
  if (depth < 0) return invalid(cat("depth: expected a number from 0, got ", depth));
  shape.insert(shape.begin() + axis, depth);
  AxisSplit split(shape, axis);
  TN_TRY(out, call.out(0, call.dtype(2), shape));
  Cells values(call.in(2)), to(out);
  for (int64_t i = 0, n = element_count(shape); i < n; ++i) {
    int64_t from = i / split.inner / split.size * split.inner + i % split.inner;
    auto index = static_cast<int64_t>(load_number(call.data<char>(0), call.dtype(0), from));
    if (index < 0) index += depth;
    to.copy(i, values, i / split.inner % split.size == index ? 1 : 0);
  }
  to.flush();
  return {};
}
Result<Node> one_hot_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 2), at(static_cast<size_t>(element_count(dims)));
  for (int64_t& index : at)
    index = random.integer(-5, 4);
  TN_TRY(indices, edit.constant<int64_t>(TN_I64, dims, at));
  TN_TRY(depth, edit.ints({5}));
  TN_TRY(values, random.input(TN_F32, {2}));
  return edit.add({.type = "OneHot",
                   .inputs = {indices, depth, values},
                   .attrs = {{"axis", random.integer(-1, 0)}}});
}

Status non_zero_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  Dim rank = x.ranked ? Dim(int64_t(x.rank())) : Dim();
  return set_output(edit, node, 0, TN_I64, {rank, Dim()});
}
// The places of what is not 0, in a dense tensor.
Result<std::vector<int64_t>> places_of(const Call& call, int64_t n) {
  std::vector<int64_t> found;
  const Status wide = dispatch<kAll>(call.dtype(0), [&]<class T>() -> Status {
    const T* x = call.data<T>(0);
    for (int64_t i = 0; i < n; ++i)
      if (static_cast<Wide<T>>(x[i]) != Wide<T>(0)) found.push_back(i);
    return {};
  });
  if (wide.ok()) return found;
  if (!is_supported(call.dtype(0))) return no_kernel(call.dtype(0));
  for (int64_t i = 0; i < n; ++i)
    if (load_number(call.data<char>(0), call.dtype(0), i) != 0) found.push_back(i);
  return found;
}
Status non_zero_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  TN_TRY(found, places_of(call, element_count(shape)));
  auto count = static_cast<int64_t>(found.size());
  TN_TRY(out, call.out(0, TN_I64, {int64_t(shape.size()), count}));
  for (size_t d = shape.size(); d-- > 0;) {  // found: of the axes up to d
    int64_t* to = data_of<int64_t>(out) + static_cast<int64_t>(d) * count;
    for (int64_t& place : found) {
      *to++ = place % shape[d];
      place /= shape[d];
    }
  }
  return {};
}
Result<Node> non_zero_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_BOOL, random.shape(1, 3)));
  return edit.add({.type = "NonZero", .inputs = {x}});
}

Status trilu_vjp(Gradients& g) {
  std::vector<Value> inputs{g.cotangent()};
  if (g.in(1)) inputs.push_back(g.in(1));
  g.set(0, g.op("Trilu", inputs, {{"upper", g.of().attr_int("upper", 1)}}));
  return {};
}
Status one_hot_vjp(Gradients& g) {
  auto all = [&](Value v) {
    return g.op("Reshape", {g.op("ReduceSum", {v}, {{"keepdims", 0}}), g.ints({1})});
  };
  uint32_t dtype = g.in(2).dtype();
  Value ends = g.op("Concat",
                    {g.op("Reshape", {g.number(0, dtype), g.ints({1})}),
                     g.op("Reshape", {g.number(1, dtype), g.ints({1})})},
                    {{"axis", 0}});
  Value hot = g.op("OneHot", {g.in(0), g.in(1), ends}, {{"axis", g.of().attr_int("axis", -1)}});
  Value on = all(g.mul(g.cotangent(), hot));
  g.set(2, g.op("Concat", {g.sub(all(g.cotangent()), on), on}, {{"axis", 0}}));
  return {};
}

Status trilu_batch(Batching& b) {
  if (b.batched(1)) return unsupported("k: expected the same for all examples");
  std::vector<Value> inputs{b.in(0)};
  if (b.in(1)) inputs.push_back(b.in(1));
  Node made = again(b, b.of(), inputs);
  if (made) b.set(0, made.output());
  return {};
}
Status one_hot_batch(Batching& b) {
  if (b.batched(1)) return unsupported("depth: expected the same for all examples");
  size_t rank = b.ranked(b.of().output(), "OneHot").rank();
  int64_t axis = b.of().attr_int("axis", -1);
  if (b.batched(0)) axis = shifted({axis}, rank)[0];
  Value values = b.in(2), chosen[2];
  uint32_t dtype = values.dtype();
  if (b.batched(2)) {  // hot or not first, then each example's own values
    std::vector<int64_t> wide(rank + 1, 1);
    wide[0] = -1;
    for (int64_t i = 0; i < 2; ++i)
      chosen[i] =
          b.reshape(b.op("Gather", {values, b.number(double(i), TN_I64)}, {{"axis", 1}}), wide);
    values = b.ints({0, 1});
  }
  Node made = again(b, b.of(), {b.in(0), b.in(1), values}, {{"axis", axis}});
  if (!made) return {};
  Value hot = made.output();
  if (b.batched(2))
    hot = b.cast(b.op("Where", {b.cast(hot, TN_BOOL), chosen[1], chosen[0]}), dtype);
  b.set(0, hot);
  return {};
}

constexpr tn_op kTrilu =
    op_row({.type = "Trilu",
            .since = 14,
            .attributes = R"([{"name": "upper", "type": "int", "default": 1}])",
            .quant = "same_scale",
            .shape = shape<same_shape, "x: any[b.. h w], k: int[one]?">,
            .cost = cost<move_cost>,
            .ref = ref<trilu_ref>,
            .sample = sample<trilu_sample>,
            .vjp = vjp<trilu_vjp>,
            .vjp_inputs = 2,
            .vjp_outputs = 0,
            .batch = batch<trilu_batch>});
constexpr tn_op kEye = op_row({.type = "EyeLike",
                               .since = 22,
                               .traits = TN_OP_READS_SHAPE,
                               .attributes = R"([{"name": "dtype", "type": "dtype"},
                                                 {"name": "k", "type": "int", "default": 0}])",
                               .shape = shape<eye_shape, "x: any[h w]">,
                               .ref = ref<eye_ref>,
                               .sample = sample<eye_sample>});
constexpr tn_op kOneHot =
    op_row({.type = "OneHot",
            .since = 11,
            .traits = TN_OP_DATA_SHAPE,
            .attributes = R"([{"name": "axis", "type": "int", "default": -1}])",
            .shape = shape<one_hot_shape, "indices: number, depth: number[one], values: any[2]">,
            .ref = ref<one_hot_ref>,
            .sample = sample<one_hot_sample>,
            .vjp = vjp<one_hot_vjp>,
            .vjp_inputs = 3,
            .vjp_outputs = 0,
            .batch = batch<one_hot_batch>});
constexpr tn_op kNonZero = op_row({.type = "NonZero",
                                   .since = 13,
                                   .traits = TN_OP_DATA_SHAPE,
                                   .shape = shape<non_zero_shape, "x: any">,
                                   .ref = ref<non_zero_ref>,
                                   .sample = sample<non_zero_sample>});

}  // namespace

TENON_OPS(patterns, &kTrilu, &kEye, &kOneHot, &kNonZero)

}  // namespace tenon::ops
