// SPDX-License-Identifier: Apache-2.0
// Back from windows: Col2Im and MaxUnpool; and pasting: CenterCropPad and TensorScatter.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "dispatch.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

using Ints = std::vector<int64_t>;

Ints ints_or(Node node, std::string_view name, size_t n, int64_t fallback) {
  Ints out = node.attr_ints(name);
  return out.empty() ? Ints(n, fallback) : out;
}

// x [n, c*block, windows] gives [n, c, image..].
Status col2im_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  std::optional<Dims> image = contents(node.input(1)), block = contents(node.input(2));
  if (!image) return set_output(edit, node, 0, unranked(x.dtype));
  Dims in = x.ranked && x.rank() == 3 ? dims_of(x) : Dims(3), out{in[0], Dim()};
  if (block) out[1] = quotient({in[1]}, *block);
  out.insert(out.end(), image->begin(), image->end());
  return set_output(edit, node, 0, x.dtype, out);
}

Status col2im_ref(const Call& call) {
  std::span<const int64_t> x = call.shape(0);
  Ints image = read_ints(call.in(1)), block = read_ints(call.in(2)), windows;
  size_t n = image.size();
  Ints dilations = ints_or(call.node(), "dilations", n, 1),
       pads = ints_or(call.node(), "pads", 2 * n, 0);
  Ints strides = ints_or(call.node(), "strides", n, 1);
  bool fits = x.size() == 3 && block.size() == n && dilations.size() == n && pads.size() == 2 * n &&
              strides.size() == n;
  for (size_t d = 0; fits && d < n; ++d)
    fits = image[d] > 0 && block[d] > 0 && strides[d] > 0 && dilations[d] > 0;
  if (!fits)
    return invalid("expected x [n, c*block, windows], and sizes from 1 for each image axis");
  for (size_t d = 0; d < n; ++d) {
    int64_t room = image[d] + pads[d] + pads[n + d] - dilations[d] * (block[d] - 1) - 1;
    windows.push_back(room < 0 ? 0 : room / strides[d] + 1);
  }
  int64_t taps = element_count(block), count = element_count(windows);
  if (x[1] % taps != 0 || x[2] != count)
    return invalid(cat("x: expected [n, c*", taps, ", ", count, "]"));
  Ints shape{x[0], x[1] / taps};
  shape.insert(shape.end(), image.begin(), image.end());
  TN_TRY(out, call.out(0, call.dtype(0), shape));
  int64_t plane = element_count(image);
  return dispatch<kNumeric>(call.dtype(0), [&, &y = out]<class T>() -> Status {
    Ints steps = dense_strides(image);
    for (int64_t p = 0; p < shape[0] * shape[1]; ++p) {
      std::vector<Wide<T>> sums(static_cast<size_t>(plane));
      Odometer tap(block);
      for (int64_t k = 0; k < taps; ++k, tap.next()) {
        Odometer window(windows);
        for (int64_t w = 0; w < count; ++w, window.next()) {
          int64_t at = 0;
          bool inside = true;
          for (size_t d = 0; d < n; ++d) {
            int64_t i = window[d] * strides[d] - pads[d] + tap[d] * dilations[d];
            inside = inside && i >= 0 && i < image[d];
            at += i * steps[d];
          }
          if (inside)
            sums[static_cast<size_t>(at)] +=
                static_cast<Wide<T>>(call.data<T>(0)[(p * taps + k) * count + w]);
        }
      }
      for (int64_t i = 0; i < plane; ++i)
        data_of<T>(y)[p * plane + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
    }
    return {};
  });
}

Result<Node> col2im_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  Ints image{random.integer(3, 5), random.integer(3, 5)}, block{2, random.integer(1, 3)};
  int64_t windows = (image[0] - 1) * (image[1] - block[1] + 1);
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 2), 2 * block[0] * block[1], windows}));
  TN_TRY(sizes, edit.ints(image));
  TN_TRY(blocks, edit.ints(block));
  return edit.add({.type = "Col2Im", .inputs = {x, sizes, blocks}});
}

Result<Ints> unpooled(Node node, std::span<const int64_t> x) {
  Ints kernel = node.attr_ints("kernel_shape"), out(x.begin(), x.end());
  size_t n = kernel.size();
  Ints strides = ints_or(node, "strides", n, 1), pads = ints_or(node, "pads", 2 * n, 0);
  if (x.size() != n + 2 || strides.size() != n || pads.size() != 2 * n)
    return invalid("expected kernel_shape, strides and pads for each axis after the second");
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
  Ints shape = call.has(2) ? read_ints(call.in(2)) : inner;
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
  Ints sizes = read_ints(call.in(1)), shape = to_vector(call.shape(0));
  TN_TRY(axes, pasted_axes(call.node(), shape.size(), sizes.size()));
  Walk walk{shape, dense_strides(shape), {}};
  Ints from_first(shape.size(), 0), to_first(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    auto d = static_cast<size_t>(axes[i]);
    if (sizes[i] < 0) return invalid(cat("shape: expected numbers from 0, got ", sizes[i]));
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
      int64_t at = first[static_cast<size_t>(o / per_batch)] + s;
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

constexpr tn_op kCol2Im = op_row({.type = "Col2Im",
                                  .since = 18,
                                  .attributes = R"([{"name": "dilations", "type": "ints"},
                                {"name": "pads", "type": "ints"},
                                {"name": "strides", "type": "ints"}])",
                                  .shape = shape<col2im_shape>,
                                  .cost = cost<move_cost>,
                                  .ref = ref<col2im_ref>,
                                  .sample = sample<col2im_sample>});
constexpr tn_op kMaxUnpool = op_row({.type = "MaxUnpool",
                                     .since = 22,
                                     .traits = TN_OP_DATA_SHAPE,
                                     .attributes = R"([{"name": "kernel_shape", "type": "ints"},
                                {"name": "pads", "type": "ints"},
                                {"name": "strides", "type": "ints"}])",
                                     .quant = "same_scale",
                                     .shape = shape<unpool_shape>,
                                     .cost = cost<move_cost>,
                                     .ref = ref<unpool_ref>,
                                     .sample = sample<unpool_sample>,
                                     .cast = "cpu=fp32"});
constexpr tn_op kCenterCropPad = op_row({.type = "CenterCropPad",
                                         .since = 18,
                                         .traits = TN_OP_DATA_SHAPE,
                                         .attributes = R"([{"name": "axes", "type": "ints"}])",
                                         .quant = "same_scale",
                                         .shape = shape<center_shape>,
                                         .cost = cost<move_cost>,
                                         .ref = ref<center_ref>,
                                         .sample = sample<center_sample>});
constexpr tn_op kTensorScatter =
    op_row({.type = "TensorScatter",
            .since = 24,
            .attributes = R"([{"name": "axis", "type": "int", "default": -2},
                              {"name": "mode", "type": "string", "default": "linear"}])",
            .quant = "same_scale",
            .shape = shape<tensor_scatter_shape>,
            .cost = cost<move_cost>,
            .ref = ref<tensor_scatter_ref>,
            .sample = sample<tensor_scatter_sample>});

}  // namespace

TENON_OPS(unpool, &kCol2Im, &kMaxUnpool, &kCenterCropPad, &kTensorScatter)

}  // namespace tenon::ops
