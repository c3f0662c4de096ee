// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements and GatherND.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
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
  int64_t batch = node.attr_int("batch_dims"), depth = batch + indices.dims.back();
  if (batch < 0 || depth > static_cast<int64_t>(x.rank()))
    return invalid(cat("indices: expected tuples of at most ", x.rank(), " numbers, got ", depth));
  Dims out = dims_of(indices), data = dims_of(x);
  out.pop_back();
  out.insert(out.end(), data.begin() + depth, data.end());
  return set_output(edit, node, 0, x.dtype, out);
}

Status gather_nd_ref(const Call& call) {
  std::span<const int64_t> data = call.shape(0), shape = call.shape(1);
  int64_t batch = call.node().attr_int("batch_dims");
  if (shape.empty() || batch < 0 || batch + shape.back() > int64_t(data.size()) ||
      batch >= int64_t(shape.size()))
    return invalid("indices: expected tuples that fit the rank of data");
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
  TN_TRY(at, random_indices(random, {random.integer(1, 4), random.integer(1, 2)}, 3));
  return edit.add({.type = "GatherND", .inputs = {x, at}});
}

constexpr const char* kAxis = R"([{"name": "axis", "type": "int", "default": 0}])";
constexpr tn_op kGather = op_row({.type = "Gather",
                                  .since = 13,
                                  .axes = "p.. i r.., j* -> p.. j* r.. ; p = axis",
                                  .attributes = kAxis,
                                  .quant = "same_scale",
                                  .shape = shape<gather_shape>,
                                  .cost = cost<move_cost>,
                                  .ref = ref<gather_ref>,
                                  .sample = sample<gather_sample>});
constexpr tn_op kGatherElements = op_row({.type = "GatherElements",
                                          .since = 13,
                                          .attributes = kAxis,
                                          .quant = "same_scale",
                                          .shape = shape<gather_elements_shape>,
                                          .cost = cost<move_cost>,
                                          .ref = ref<gather_elements_ref>,
                                          .sample = sample<gather_elements_sample>});
constexpr tn_op kGatherNd =
    op_row({.type = "GatherND",
            .since = 13,
            .attributes = R"([{"name": "batch_dims", "type": "int", "default": 0}])",
            .quant = "same_scale",
            .shape = shape<gather_nd_shape>,
            .cost = cost<move_cost>,
            .ref = ref<gather_nd_ref>,
            .sample = sample<gather_nd_sample>});

}  // namespace

TENON_OPS(gather, &kGather, &kGatherElements, &kGatherNd)

}  // namespace tenon::ops
