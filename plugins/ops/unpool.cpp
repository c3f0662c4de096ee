// SPDX-License-Identifier: Apache-2.0
// Back from windows: MaxUnpool; and pasting: CenterCropPad and TensorScatter.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

Result<Ints> unpooled(Node node, std::span<const int64_t> x) {
  Ints kernel = node.attr_ints("kernel_shape"), out(x.begin(), x.end());
  size_t n = kernel.size();
  Ints strides = ints_or(node, "strides", n, 1), pads = ints_or(node, "pads", 2 * n, 0);
  if (x.size() != n + 2 || strides.size() != n || pads.size() != 2 * n)
    return invalid("expected kernel_shape, strides and pads for each axis after the second");
  TN_CHECK(expect_moderate("kernel_shape", kernel, 1));
  TN_CHECK(expect_moderate("strides", strides, 1));
  TN_CHECK(expect_moderate("pads", pads, INT32_MIN));
  for (size_t d = 0; d < n; ++d)
    if (out[d + 2] >= 0)
      out[d + 2] = (out[d + 2] - 1) * strides[d] - pads[d] - pads[n + d] + kernel[d];
  return out;
}

Status unpool_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (node.input(2)) {
    std::optional<Dims> stated = contents(node.input(2));
    return stated ? set_output(edit, node, 0, x.dtype, *stated)
                  : set_output(edit, node, 0, unranked(x.dtype));
  }
  if (!x.ranked) return set_output(edit, node, 0, x);
  TN_TRY(shape, unpooled(node, x.dims));
  Dims out;
  for (int64_t dim : shape)
    out.push_back(dim < 0 ? Dim() : Dim(dim));
  return set_output(edit, node, 0, x.dtype, out);
}

// The indices count in the shape that the pool had seen, which output_shape may exceed.
Status unpool_ref(const Call& call) {
  TN_TRY(inner, unpooled(call.node(), call.shape(0)));
  Ints shape = inner;
  if (call.has(2)) {
    TN_TRY(stated, read_shape(call.in(2), "output_shape"));
    shape = stated;
  }
  if (shape.size() != inner.size() || to_vector(call.shape(1)) != to_vector(call.shape(0)))
    return invalid("expected indices of the shape of x, and output_shape of its rank");
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] < inner[d])
      return invalid(
          cat("output_shape axis ", d, ": expected at least ", inner[d], ", got ", shape[d]));
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  std::memset(data_of<char>(out), 0, bytes_of(call.dtype(0), element_count(out)));
  Cells from(call.in(0)), to(out);
  Ints at = read_ints(call.in(1)), strides = dense_strides(shape);
  int64_t limit = element_count(inner);
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0 || at[i] >= limit)
      return {TN_OUT_OF_RANGE, cat("indices: expected 0..", limit - 1, ", got ", at[i])};
    to.copy(Odometer(inner, at[i]).dot(strides), from, static_cast<int64_t>(i));
  }
  to.flush();
  return {};
}

// Written into zeros by flat index, then padded to output_shape.
Result<std::vector<Value>> unpool_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type x = node.input(0).type(), y = node.output().type();
  if (!x.is_static() || !y.is_static())
    return unsupported("MaxUnpool: composite where all sizes are known");
  TN_TRY(inner, unpooled(node, x.dims));
  Value zeros = b.op("Expand", {b.number(0, x.dtype), b.ints({element_count(inner)})});
  Value out =
      b.op("ScatterND", {zeros, b.reshape(node.input(1), {-1, 1}), b.reshape(node.input(0), {-1})});
  Ints pads(2 * inner.size(), 0);
  for (size_t d = 0; d < inner.size(); ++d)
    pads[inner.size() + d] = y.dims[d] - inner[d];
  out = b.op("Pad", {b.reshape(out, inner), b.ints(pads)});
  TN_CHECK(b.status());
  return std::vector<Value>{out};
}

// Indices count within the example; in the rows of all, those of the others lie before it.
Status unpool_batch(Batching& b) {
  Type one = b.fixed(b.of().input(0), "MaxUnpool");
  TN_CHECK(b.status());
  TN_TRY(inner, unpooled(b.of(), one.dims));
  Value at = b.cast(for_all_examples(b, 1), TN_I64);
  at = b.add(at, example_offsets(b, element_count(inner), one.rank()));
  Ints rows = one.dims;
  rows[0] = -1;
  std::vector<Value> inputs{examples_as_rows(b, 0), b.reshape(at, rows)};
  if (b.of().input(2)) {
    TN_TRY(shape, stated_ints(b, 2));
    const int64_t n = known_example_count(b);
    if (n < 0) return unsupported("output_shape: expected a count of examples that is known");
    shape[0] *= n;
    inputs.push_back(b.ints(shape));
  }
  Node made = again(b, b.of(), inputs);
  if (made) b.set(0, rows_as_examples(b, made.output()));
  return {};
}

Result<Node> unpool_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {1, 1, 2, 2}));
  Ints kernel{2, 2}, strides{2, 2}, at{random.integer(0, 1), 3, 9, 14};
  TN_TRY(indices, edit.constant<int64_t>(TN_I64, {1, 1, 2, 2}, at));
  return edit.add({.type = "MaxUnpool",
                   .inputs = {x, indices},
                   .attrs = {{"kernel_shape", kernel}, {"strides", strides}}});
}

Result<Ints> pasted_axes(Node node, size_t rank, size_t n) {
  Ints axes = node.attr_ints("axes");
  if (axes.empty())
    for (size_t d = 0; d < rank; ++d)
      axes.push_back(static_cast<int64_t>(d));
  if (axes.size() != n) return invalid(cat("shape: expected ", axes.size(), " numbers, got ", n));
  for (int64_t& axis : axes) {
    TN_TRY(at, axis_in(axis, rank, "axes"));
    axis = at;
  }
  TN_CHECK(expect_once("axes", axes));
  return axes;
}

Status center_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  std::optional<Dims> sizes = contents(node.input(1));
  if (!x.ranked) return set_output(edit, node, 0, x);
  Dims out = dims_of(x);
  if (!sizes) return set_output(edit, node, 0, x.dtype, Dims(out.size()));
  TN_TRY(axes, pasted_axes(node, out.size(), sizes->size()));
  for (size_t i = 0; i < axes.size(); ++i)
    out[static_cast<size_t>(axes[i])] = (*sizes)[i];
  return set_output(edit, node, 0, x.dtype, out);
}

Status center_ref(const Call& call) {
  TN_TRY(sizes, read_shape(call.in(1), "shape"));
  Ints shape = to_vector(call.shape(0));
  TN_TRY(axes, pasted_axes(call.node(), shape.size(), sizes.size()));
  Walk walk{shape, dense_strides(shape), {}};
  Ints from_first(shape.size(), 0), to_first(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    auto d = static_cast<size_t>(axes[i]);
    from_first[d] = std::max<int64_t>(shape[d] - sizes[i], 0) / 2;
    to_first[d] = std::max<int64_t>(sizes[i] - shape[d], 0) / 2;
    walk.shape[d] = std::min(shape[d], sizes[i]);
    shape[d] = sizes[i];
  }
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  std::memset(data_of<char>(out), 0, bytes_of(call.dtype(0), element_count(out)));
  walk.to_strides = dense_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    walk.from_at += from_first[d] * walk.from_strides[d];
    walk.to_at += to_first[d] * walk.to_strides[d];
  }
  Cells from(call.in(0)), to(out);
  copy_walk(call.ctx(), walk, from, to);
  to.flush();
  return {};
}

Result<std::vector<Value>> center_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type x = node.input(0).type();
  std::optional<Ints> sizes = known_ints(node.input(1));
  if (!x.is_static() || !sizes) return unsupported("CenterCropPad: composite with known sizes");
  TN_TRY(axes, pasted_axes(node, x.rank(), sizes->size()));
  Ints first(x.rank(), 0), last = x.dims, pads(2 * x.rank(), 0), all;
  for (size_t i = 0; i < axes.size(); ++i) {
    auto d = static_cast<size_t>(axes[i]);
    if ((*sizes)[i] < 0) return invalid(cat("shape: expected numbers from 0, got ", (*sizes)[i]));
    int64_t cut = std::max<int64_t>(x.dims[d] - (*sizes)[i], 0);
    int64_t more = std::max<int64_t>((*sizes)[i] - x.dims[d], 0);
    first[d] = cut / 2;
    last[d] = cut / 2 + x.dims[d] - cut;
    pads[d] = more / 2;
    pads[x.rank() + d] = more - more / 2;
  }
  for (size_t d = 0; d < x.rank(); ++d)
    all.push_back(static_cast<int64_t>(d));
  Value kept = b.op("Slice", {node.input(0), b.ints(first), b.ints(last), b.ints(all)});
  Value y = b.op("Pad", {kept, b.ints(pads)});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> center_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 5), 2, random.integer(1, 5)}));
  Ints axes{0, -1};
  TN_TRY(sizes, edit.ints({random.integer(1, 6), random.integer(1, 6)}));
  return edit.add({.type = "CenterCropPad", .inputs = {x, sizes}, .attrs = {{"axes", axes}}});
}

Status tensor_scatter_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}

Status tensor_scatter_ref(const Call& call) {
  std::span<const int64_t> cache = call.shape(0), update = call.shape(1);
  std::string_view mode = call.node().attr_text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return invalid(cat("mode: expected one of linear, circular, got '", mode, "'"));
  TN_TRY(axis, axis_in(call.node().attr_int("axis", -2), cache.size()));
  Ints wanted = to_vector(cache);
  if (axis < 1 || update.size() != cache.size())
    return invalid("expected update of the rank of past_cache, and axis after the batch");
  auto along = static_cast<size_t>(axis);
  wanted[along] = update[along];
  if (to_vector(update) != wanted || update[along] > cache[along])
    return invalid("update: expected the shape of past_cache, and no more steps than it has");
  Ints first = call.has(2) ? read_ints(call.in(2)) : Ints(static_cast<size_t>(cache[0]), 0);
  if (static_cast<int64_t>(first.size()) != cache[0])
    return invalid(cat("write_indices: expected ", cache[0], " numbers, got ", first.size()));
  TN_TRY(out, call.out(0, call.dtype(0), cache));
  std::memcpy(data_of<char>(out), call.data<char>(0), bytes_of(call.dtype(0), element_count(out)));
  AxisSplit split(cache, axis);
  Cells from(call.in(1)), to(out);
  int64_t per_batch = split.outer / std::max<int64_t>(cache[0], 1);
  for (int64_t o = 0; o < split.outer; ++o) {
    for (int64_t s = 0; s < update[along]; ++s) {
      int64_t at = 0;
      if (__builtin_add_overflow(first[static_cast<size_t>(o / per_batch)], s, &at)) at = -1;
      if (mode == "circular") at = (at % split.size + split.size) % split.size;
      if (at < 0 || at >= split.size)
        return {TN_OUT_OF_RANGE,
                cat("write_indices: expected steps in 0..", split.size - 1, ", got ", at)};
      to.copy((o * split.size + at) * split.inner, from, (o * update[along] + s) * split.inner,
              split.inner);
    }
  }
  to.flush();
  return {};
}

Result<std::vector<Value>> tensor_scatter_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type cache = node.input(0).type(), update = node.input(1).type();
  if (!cache.is_static() || !update.is_static() || cache.rank() != update.rank())
    return unsupported("TensorScatter: composite where all sizes are known");
  TN_TRY(axis, axis_in(node.attr_int("axis", -2), cache.rank()));
  auto along = static_cast<size_t>(axis);
  Ints steps, first(cache.rank(), 1), own(cache.rank(), 1);
  for (int64_t s = 0; s < update.dims[along]; ++s)
    steps.push_back(s);
  first[0] = -1;
  own[along] = -1;
  Value at = b.reshape(b.ints(steps), own);
  if (node.input(2)) at = b.add(at, b.reshape(b.cast(node.input(2), TN_I64), first));
  if (node.attr_text("mode", "linear") == "circular")
    at = b.op("Mod", {at, b.number(static_cast<double>(cache.dims[along]), TN_I64)});
  else if (node.input(2))  // ScatterElements would count from the end what is below 0
    at = b.op("Where", {b.op("Less", {at, b.number(0, TN_I64)}), b.ints({cache.dims[along]}), at});
  at = b.op("Expand", {at, b.ints(update.dims)});
  Value y = b.op("ScatterElements", {node.input(0), at, node.input(1)}, {{"axis", axis}});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> tensor_scatter_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t batch = random.integer(1, 2), length = random.integer(2, 5);
  TN_TRY(cache, random.input(TN_F32, {batch, 2, length, 3}));
  TN_TRY(update, random.input(TN_F32, {batch, 2, random.integer(1, 2), 3}));
  Ints first(static_cast<size_t>(batch));
  for (int64_t& at : first)
    at = random.integer(0, length - 1);
  TN_TRY(at, edit.ints(first));
  return edit.add(
      {.type = "TensorScatter", .inputs = {cache, update, at}, .attrs = {{"mode", "circular"}}});
}

constexpr tn_op kMaxUnpool =
    op_row({.type = "MaxUnpool",
            .since = 22,
            .traits = TN_OP_DATA_SHAPE,
            .attributes = R"([{"name": "kernel_shape", "type": "ints"},
                                {"name": "pads", "type": "ints"},
                                {"name": "strides", "type": "ints"}])",
            .quant = "same_scale",
            .shape = shape<unpool_shape, "x: number[r..], indices: int[r..], shape: int[_]?">,
            .decompose = decompose<unpool_decompose>,
            .cost = cost<move_cost>,
            .ref = ref<unpool_ref>,
            .sample = sample<unpool_sample>,
            .batch = batch<unpool_batch>,
            .cast = "cpu=fp32"});
constexpr tn_op kCenterCropPad = op_row({.type = "CenterCropPad",
                                         .since = 18,
                                         .traits = TN_OP_DATA_SHAPE,
                                         .attributes = R"([{"name": "axes", "type": "ints"}])",
                                         .quant = "same_scale",
                                         .shape = shape<center_shape, "x: any, shape: int[n]">,
                                         .decompose = decompose<center_decompose>,
                                         .cost = cost<move_cost>,
                                         .ref = ref<center_ref>,
                                         .sample = sample<center_sample>});
constexpr tn_op kTensorScatter =
    op_row({.type = "TensorScatter",
            .since = 24,
            .attributes = R"([{"name": "axis", "type": "int", "default": -2},
                              {"name": "mode", "type": "string", "default": "linear"}])",
            .quant = "same_scale",
            .shape = shape<tensor_scatter_shape,
                           "past_cache: T[b r..], update: T[b r'..], write_indices: int[b]?">,
            .decompose = decompose<tensor_scatter_decompose>,
            .cost = cost<move_cost>,
            .ref = ref<tensor_scatter_ref>,
            .sample = sample<tensor_scatter_sample>});

}  // namespace

TENON_OPS(unpool, &kMaxUnpool, &kCenterCropPad, &kTensorScatter)

}  // namespace tenon::ops
