// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements and GatherND.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "example_norms.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Result<std::vector<int64_t>> checked_indices(const DLTensor& tensor, int64_t size) {
  std::vector<int64_t> out = read_ints(tensor);
  for (int64_t& index : out) {
    if (index < -size || index >= size) {
      return Status(TN_OUT_OF_RANGE,
                    cat("indices: expected -", size, "..", size - 1, ", got ", index));
    }
    if (index < 0) index += size;
  }
  return out;
}

Status gather_contents(EditView edit, Node node) {
  std::optional<Dims> data = contents(node.input(0));
  std::optional<std::vector<int64_t>> at = known_ints(node.input(1));
  if (!data || !at || node.input(0).type().rank() != 1)
    return set_contents(edit, node.output(), {});
  Dims out;
  auto size = static_cast<int64_t>(data->size());
  for (int64_t index : *at) {
    if (index < -size || index >= size)
      return invalid(cat("indices: expected -", size, "..", size - 1, ", got ", index));
    out.push_back((*data)[static_cast<size_t>(index < 0 ? index + size : index)]);
  }
  return set_contents(edit, node.output(), out);
}

Status gather_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), indices = node.input(1).type();
  if (!x.ranked || !indices.ranked) return set_output(edit, node, 0, unranked(x.dtype));
  TN_TRY(axis, axis_in(node.attr_int("axis"), x.rank()));
  Dims out = dims_of(x), at = dims_of(indices);
  out.erase(out.begin() + axis);
  out.insert(out.begin() + axis, at.begin(), at.end());
  TN_CHECK(set_output(edit, node, 0, x.dtype, out));
  return out.size() <= 1 ? gather_contents(edit, node) : Status();
}

Status gather_ref(const Call& call) {
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), call.shape(0).size()));
  AxisSplit split(call.shape(0), axis);
  TN_TRY(indices, checked_indices(call.in(1), split.size));
  std::vector<int64_t> out = to_vector(call.shape(0));
  out.erase(out.begin() + axis);
  out.insert(out.begin() + axis, call.shape(1).begin(), call.shape(1).end());
  TN_TRY(result, call.out(0, call.dtype(0), out));
  Cells from(call.in(0)), to(result);
  auto n = static_cast<int64_t>(indices.size());
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t i = 0; i < n; ++i) {
      to.copy((o * n + i) * split.inner, from,
              (o * split.size + indices[static_cast<size_t>(i)]) * split.inner, split.inner);
    }
  }
  to.flush();
  return {};
}

Result<Value> random_indices(Sampler& random, const std::vector<int64_t>& dims, int64_t size) {
  std::vector<int64_t> at(static_cast<size_t>(element_count(dims)));
  for (int64_t& index : at)
    index = random.integer(-size, size - 1);
  return random.edit().constant<int64_t>(TN_I64, dims, at);
}

Result<Node> gather_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4);
  int64_t axis = random.integer(0, static_cast<int64_t>(dims.size()) - 1);
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(at, random_indices(random, random.shape(0, 2), dims[static_cast<size_t>(axis)]));
  return edit.add({.type = "Gather", .inputs = {x, at}, .attrs = {{"axis", axis}}});
}

Status gather_elements_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (x.ranked) TN_CHECK(axis_in(node.attr_int("axis"), x.rank()).status());
  Type out = node.input(1).type();
  out.dtype = node.input(0).dtype();
  return set_output(edit, node, 0, out);
}

Status gather_elements_ref(const Call& call) {
  std::span<const int64_t> data = call.shape(0), shape = call.shape(1);
  if (data.size() != shape.size()) return invalid("expected data and indices of one rank");
  TN_TRY(axis, axis_in(call.node().attr_int("axis"), data.size()));
  auto along = static_cast<size_t>(axis);
  for (size_t d = 0; d < data.size(); ++d) {
    if (d != along && shape[d] > data[d])
      return invalid(cat("indices axis ", d, ": expected at most ", data[d], ", got ", shape[d]));
  }
  TN_TRY(indices, checked_indices(call.in(1), data[along]));
  TN_TRY(result, call.out(0, call.dtype(0), shape));
  Cells from(call.in(0)), to(result);
  std::vector<int64_t> strides = dense_strides(data);
  Odometer at(shape);
  for (size_t i = 0; i < indices.size(); ++i, at.next()) {
    to.copy(static_cast<int64_t>(i), from,
            at.dot(strides) + (indices[i] - at[along]) * strides[along]);
  }
  to.flush();
  return {};
}

Result<Node> gather_elements_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  int64_t axis = random.integer(0, static_cast<int64_t>(dims.size()) - 1);
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(at, random_indices(random, dims, dims[static_cast<size_t>(axis)]));
  return edit.add({.type = "GatherElements", .inputs = {x, at}, .attrs = {{"axis", axis}}});
}

Status gather_nd_shape(EditView edit, Node node) {
  Type x = node.input(0).type(), indices = node.input(1).type();
  bool open = !x.ranked || !indices.ranked || indices.dims.empty() || indices.dims.back() < 0;
  if (open) return set_output(edit, node, 0, unranked(x.dtype));
  int64_t batch = node.attr_int("batch_dims"), rank = static_cast<int64_t>(x.rank());
  int64_t depth = indices.dims.back();
  if (batch < 0 || batch > rank || depth > rank - batch)
    return invalid(cat("indices: expected tuples of at most ", rank, " numbers, got ", depth,
                       " after ", batch, " of the batch"));
  depth += batch;
  for (size_t d = 0; d < static_cast<size_t>(batch) && d + 1 < indices.rank(); ++d)
    if (x.dims[d] >= 0 && indices.dims[d] >= 0 && x.dims[d] != indices.dims[d])
      return invalid(cat("indices axis ", d, ": expected ", x.dims[d], ", got ", indices.dims[d]));
  Dims out = dims_of(indices), data = dims_of(x);
  out.pop_back();
  out.insert(out.end(), data.begin() + depth, data.end());
  return set_output(edit, node, 0, x.dtype, out);
}

Status gather_nd_ref(const Call& call) {
  std::span<const int64_t> data = call.shape(0), shape = call.shape(1);
  int64_t batch = call.node().attr_int("batch_dims");
  auto rank = static_cast<int64_t>(data.size());
  if (shape.empty() || batch < 0 || batch > rank || shape.back() > rank - batch ||
      batch >= int64_t(shape.size()) ||
      !std::equal(shape.begin(), shape.begin() + batch, data.begin()))
    return invalid("indices: expected tuples that fit the rank of data, and its batch axes");
  auto first = static_cast<size_t>(batch), depth = static_cast<size_t>(shape.back());
  std::vector<int64_t> out(shape.begin(), shape.end() - 1), strides = dense_strides(data);
  int64_t tuples = element_count(out), batches = element_count(data.subspan(0, first));
  int64_t run = element_count(data.subspan(first + depth));
  out.insert(out.end(), data.begin() + int64_t(first + depth), data.end());
  TN_TRY(result, call.out(0, call.dtype(0), out));
  std::vector<int64_t> indices = read_ints(call.in(1));
  Cells from(call.in(0)), to(result);
  int64_t per_batch = batches ? tuples / batches : 0;
  int64_t batch_size = element_count(data.subspan(first));
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t at = t / std::max<int64_t>(per_batch, 1) * batch_size;
    for (size_t k = 0; k < depth; ++k) {
      int64_t size = data[first + k], index = indices[static_cast<size_t>(t) * depth + k];
      if (index < -size || index >= size)
        return {TN_OUT_OF_RANGE, cat("indices: expected -", size, "..", size - 1, ", got ", index)};
      at += (index < 0 ? index + size : index) * strides[first + k];
    }
    to.copy(t * run, from, at, run);
  }
  to.flush();
  return {};
}

Result<Node> gather_nd_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims{3, 3, random.integer(1, 4)};
  TN_TRY(x, random.input(TN_F32, dims));
  int64_t n_shared = random.integer(0, 1), depth = random.integer(1, 2);
  std::vector<int64_t> of{random.integer(1, 4), depth};
  if (n_shared > 0) of = {3, random.integer(1, 4), 1};
  TN_TRY(at, random_indices(random, of, n_shared > 0 ? dims[1] : 3));
  return edit.add({.type = "GatherND", .inputs = {x, at}, .attrs = {{"batch_dims", n_shared}}});
}

// Each gradient is added where its element was taken from.
Status gather_vjp(Gradients& g) {
  Type x = g.ranked(g.in(0), "Gather"), indices = g.ranked(g.in(1), "Gather");
  TN_TRY(found, axis_in(g.of().attr_int("axis"), x.rank()));
  auto axis = static_cast<size_t>(found), depth = indices.rank();
  Value like = g.in(0), dy = g.cotangent();
  std::vector<int64_t> back(x.rank());
  if (axis > 0) {  // with the gathered axis, and the axes of indices, first
    std::vector<int64_t> front{found}, lead;
    for (size_t i = 0; i < depth; ++i)
      lead.push_back(static_cast<int64_t>(axis + i));
    for (size_t i = 0; i < x.rank(); ++i) {
      back[i] = static_cast<int64_t>(i < axis ? i + 1 : i == axis ? 0 : i);
      if (i == axis) continue;
      front.push_back(static_cast<int64_t>(i));
      lead.push_back(static_cast<int64_t>(i < axis ? i : i + depth - 1));
    }
    like = g.transpose(like, front);
    dy = g.transpose(dy, lead);
  }
  Value dx = g.op("ScatterND", {g.zeros_like(like), g.op("Unsqueeze", {g.in(1), g.ints({-1})}), dy},
                  {{"reduction", "add"}});
  g.set(0, axis > 0 ? g.transpose(dx, back) : dx);
  return {};
}
Status gather_elements_vjp(Gradients& g) {
  g.set(0, g.op("ScatterElements", {g.zeros_like(g.in(0)), g.in(1), g.cotangent()},
                {{"axis", g.of().attr_int("axis")}, {"reduction", "add"}}));
  return {};
}
// Indices that begin with the coordinates along the first axes, which both inputs share.
Value with_places(Builder& b, Value indices, int64_t n_shared) {
  std::vector<Value> parts;
  Value index = b.cast(indices, TN_I64);
  Value one = b.op("Add", {b.zeros_like(b.op("Gather", {index, b.ints({0})}, {{"axis", -1}})),
                           b.ints({1})});  // [.., 1]
  for (int64_t axis = 0; axis < n_shared; ++axis)
    parts.push_back(b.op("CumSum", {one, b.reshape(b.ints({axis}), {})}, {{"exclusive", 1}}));
  parts.push_back(index);
  return b.op("Concat", parts, {{"axis", -1}});
}
Status gather_nd_vjp(Gradients& g) {
  int64_t n_shared = g.of().attr_int("batch_dims");
  Value indices = n_shared > 0 ? with_places(g, g.in(1), n_shared) : g.in(1);
  g.set(0,
        g.op("ScatterND", {g.zeros_like(g.in(0)), indices, g.cotangent()}, {{"reduction", "add"}}));
  return {};
}

Status gather_batch(Batching& b) {
  if (!b.batched(1)) return batch_first_by_axis(b);
  Type x = b.ranked(b.of().input(0), "Gather"), at = b.ranked(b.of().input(1), "Gather");
  TN_TRY(axis, axis_in(b.of().attr_int("axis"), x.rank()));
  if (!b.batched(0)) {  // the new axis goes where the axes of indices go
    Value y = b.op("Gather", {b.in(0), b.in(1)}, {{"axis", axis}});
    std::vector<int64_t> perm{axis};
    for (int64_t i = 0; i < int64_t(x.rank() + at.rank()); ++i)
      if (i != axis) perm.push_back(i);
    b.set(0, axis == 0 ? y : b.transpose(y, perm));
    return {};
  }
  // [n, p.., i, r..] as [n, i, p.., r..]; of the result [n, j*, p.., r..] then [n, p.., j*, r..].
  std::vector<int64_t> front{0, axis + 1}, back{0};
  auto depth = static_cast<int64_t>(at.rank()), rank = static_cast<int64_t>(x.rank());
  for (int64_t i = 1; i <= rank; ++i)
    if (i != axis + 1) front.push_back(i);
  for (int64_t i = 0; i < axis; ++i)
    back.push_back(1 + depth + i);
  for (int64_t i = 0; i < depth; ++i)
    back.push_back(1 + i);
  for (int64_t i = 1 + depth + axis; i < rank + depth; ++i)
    back.push_back(i);
  Value y = b.op("GatherND",
                 {axis > 0 ? b.transpose(b.in(0), front) : b.in(0),
                  b.op("Unsqueeze", {b.in(1), b.ints({-1})})},
                 {{"batch_dims", 1}});
  b.set(0, axis > 0 ? b.transpose(y, back) : y);
  return {};
}
Status gather_nd_batch(Batching& b) {
  b.set(0, b.op("GatherND", {for_all_examples(b, 0), for_all_examples(b, 1)},
                {{"batch_dims", b.of().attr_int("batch_dims") + 1}}));
  return {};
}

constexpr const char* kAxis = R"([{"name": "axis", "type": "int", "default": 0}])";
constexpr tn_op kGather = op_row({.type = "Gather",
                                  .since = 13,
                                  .axes = "p.. i r.., j* -> p.. j* r.. ; p = axis",
                                  .attributes = kAxis,
                                  .quant = "same_scale rows=0",
                                  .shape = shape<gather_shape, "x: any, indices: int">,
                                  .cost = cost<move_cost>,
                                  .ref = ref<gather_ref>,
                                  .sample = sample<gather_sample>,
                                  .vjp = vjp<gather_vjp>,
                                  .vjp_inputs = 2,
                                  .vjp_outputs = 0,
                                  .batch = batch<gather_batch>,
                                  .coupling = "gather at=1 axis=axis",
                                  .example_norms = example_norms<gather_example_norms>});
constexpr tn_op kGatherElements =
    op_row({.type = "GatherElements",
            .since = 13,
            .attributes = kAxis,
            .quant = "same_scale",
            .shape = shape<gather_elements_shape, "x: any[r..], indices: int[r'..]">,
            .cost = cost<move_cost>,
            .ref = ref<gather_elements_ref>,
            .sample = sample<gather_elements_sample>,
            .vjp = vjp<gather_elements_vjp>,
            .vjp_inputs = 2,
            .vjp_outputs = 0,
            .batch = batch<batch_all_by_axis>});
constexpr tn_op kGatherNd =
    op_row({.type = "GatherND",
            .since = 13,
            .attributes = R"([{"name": "batch_dims", "type": "int", "default": 0}])",
            .quant = "same_scale",
            .shape = shape<gather_nd_shape, "x: any, indices: int">,
            .cost = cost<move_cost>,
            .ref = ref<gather_nd_ref>,
            .sample = sample<gather_nd_sample>,
            .vjp = vjp<gather_nd_vjp>,
            .vjp_inputs = 2,
            .vjp_outputs = 0,
            .batch = batch<gather_nd_batch>});

}  // namespace

TENON_OPS(gather, &kGather, &kGatherElements, &kGatherNd)

}  // namespace tenon::ops
