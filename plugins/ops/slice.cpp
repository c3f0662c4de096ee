// SPDX-License-Identifier: Apache-2.0
// Slice, with steps of either sign.
#include <algorithm>

#include "batching_rules.hpp"
#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

struct Range {
  int64_t start = 0, count = 0, step = 1;
};

// NumPy's rule: ends beyond the axis are pulled in.
Result<Range> range_of(int64_t start, int64_t end, int64_t step, int64_t size) {
  if (step == 0) return invalid("steps: expected a number other than 0, got 0");
  // Counted from the end; what lies before the first element stays negative.
  auto place = [size](int64_t at) { return at < -size ? -1 : at < 0 ? at + size : at; };
  start = place(start);
  end = place(end);
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
    return Range{start, end > start ? (end - start - 1) / step + 1 : 0, step};
  }
  start = std::clamp<int64_t>(start, -1, size - 1);
  end = std::clamp<int64_t>(end, -1, size - 1);
  if (step == INT64_MIN) return Range{start, start > end ? 1 : 0, -1};
  return Range{start, start > end ? (start - end - 1) / -step + 1 : 0, step};
}

// How many elements start:end:step leaves of an axis.
Result<Dim> sliced(const Dim& size, const Dim& start, const Dim& end, const Dim& step) {
  if (size.known() && start.known() && end.known() && step.known()) {
    TN_TRY(range, range_of(*start.value, *end.value, *step.value, *size.value));
    return Dim(range.count);
  }
  if (!step.is(1)) return Dim();
  // Ends written as "all" or counted from the end work for a symbol too, as long as the axis is
  // long enough, which shapes that were exported are.
  auto place = [&size](const Dim& at) -> Dim {
    if (at == size) return size;
    if (at.known() && *at.value >= INT32_MAX) return size;
    return at.known() && *at.value < 0 ? size + at : at;
  };
  Dim from = place(start), to = place(end);
  if (!size.known() && to.known() && *to.value > 0) return Dim();  // the axis may be shorter
  return to - from;
}

Status slice_contents(EditView edit, Node node, const std::optional<Dims>& in) {
  auto starts = known_ints(node.input(1)), ends = known_ints(node.input(2));
  std::vector<int64_t> steps{1};
  if (node.input(4)) {
    auto stated = known_ints(node.input(4));
    if (!stated) return set_contents(edit, node.output(), {});
    steps = *stated;
  }
  if (!in || !starts || !ends || starts->size() != 1 || ends->size() != 1 || steps.size() != 1)
    return set_contents(edit, node.output(), {});
  TN_TRY(range, range_of((*starts)[0], (*ends)[0], steps[0], static_cast<int64_t>(in->size())));
  Dims out;
  for (int64_t i = 0; i < range.count; ++i)
    out.push_back((*in)[static_cast<size_t>(range.start + i * range.step)]);
  return set_contents(edit, node.output(), out);
}

Status slice_shape(EditView edit, Node node) {
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, x);
  Dims out = dims_of(x);
  std::optional<Dims> starts = contents(node.input(1)), ends = contents(node.input(2));
  std::optional<Dims> steps = contents(node.input(4));
  std::optional<std::vector<int64_t>> axes = known_ints(node.input(3));
  bool axes_open = node.input(3) && !axes;
  if (!starts || !ends || axes_open) {
    // Which axes are cut, or how many, is not known; an axis of symbols may be any of them.
    return set_output(edit, node, 0, x.dtype, Dims(out.size()));
  }
  size_t n = starts->size();
  if (ends->size() != n || (axes && axes->size() != n) || (steps && steps->size() != n) ||
      (!axes && n > out.size())) {
    return invalid(cat("starts, ends, axes and steps: expected lists of one length, got ", n,
                       " starts and ", ends->size(), " ends"));
  }
  Ints cut;
  for (size_t i = 0; i < n; ++i) {
    TN_TRY(axis, axis_in(axes ? (*axes)[i] : static_cast<int64_t>(i), out.size(), "axes"));
    cut.push_back(axis);
    Dim& size = out[static_cast<size_t>(axis)];
    Dim step = !node.input(4) ? Dim(1) : steps ? (*steps)[i] : Dim();
    TN_TRY(count, sliced(size, (*starts)[i], (*ends)[i], step));
    size = count;
  }
  TN_CHECK(expect_once("axes", cut));
  TN_CHECK(set_output(edit, node, 0, x.dtype, out));
  return out.size() == 1 ? slice_contents(edit, node, contents(node.input(0))) : Status();
}

Status slice_ref(const Call& call) {
  std::span<const int64_t> shape = call.shape(0);
  std::vector<int64_t> starts = read_ints(call.in(1)), ends = read_ints(call.in(2)), axes, steps;
  if (call.has(3)) axes = read_ints(call.in(3));
  if (call.has(4)) steps = read_ints(call.in(4));
  if (!call.has(3))
    for (size_t i = 0; i < starts.size(); ++i)
      axes.push_back(static_cast<int64_t>(i));
  if (!call.has(4)) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return invalid("starts, ends, axes and steps: expected lists of one length");
  std::vector<int64_t> strides = dense_strides(shape);
  Walk walk{to_vector(shape), strides, {}, 0, 0};
  for (size_t i = 0; i < starts.size(); ++i) {
    TN_TRY(axis, axis_in(axes[i], shape.size(), "axes"));
    auto d = static_cast<size_t>(axes[i] = axis);
    TN_TRY(range, range_of(starts[i], ends[i], steps[i], shape[d]));
    walk.shape[d] = range.count;
    walk.from_at += range.count > 0 ? range.start * strides[d] : 0;
    // A step over the whole axis takes one element: how far it goes does not matter.
    walk.from_strides[d] = range.count > 1 ? strides[d] * range.step : 0;
  }
  TN_CHECK(expect_once("axes", axes));
  walk.to_strides = dense_strides(walk.shape);
  TN_TRY(out, call.out(0, call.dtype(0), walk.shape));
  Cells from(call.in(0)), to(out);
  copy_walk(call.ctx(), walk, from, to);
  to.flush();
  return {};
}

Result<Node> slice_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 4, 6), starts, ends, axes, steps;
  TN_TRY(x, random.input(TN_F32, dims));
  for (size_t i = 0; i < dims.size(); ++i) {
    if (random.integer(0, 2) == 0) continue;
    axes.push_back(static_cast<int64_t>(i));
    bool back = random.coin();
    steps.push_back(back ? -random.integer(1, 2) : random.integer(1, 2));
    starts.push_back(back ? -1 : random.integer(0, 1));
    ends.push_back(back ? -INT32_MAX : INT32_MAX);
  }
  std::vector<Value> inputs{x};
  for (const std::vector<int64_t>* list : {&starts, &ends, &axes, &steps}) {
    TN_TRY(value, edit.ints(*list));
    inputs.push_back(value);
  }
  return edit.add({.type = "Slice", .inputs = inputs});
}

// [.., n, ..] with step - 1 zeros behind each element of the axis: [.., n * step, ..].
Value apart(Gradients& g, Value dy, size_t axis, int64_t step) {
  Type type = g.fixed(dy, "the gradient");
  if (type.dims.size() <= axis) return {};
  std::vector<int64_t> ends(2 * type.rank() + 2, 0);
  ends[type.rank() + axis + 2] = step - 1;
  Value column = g.op("Unsqueeze", {dy, g.ints({static_cast<int64_t>(axis) + 1})});
  type.dims[axis] *= step;
  return g.reshape(g.op("Pad", {column, g.ints(ends)}), type.dims);
}

// The gradient goes back to where each element came from: in rising order, apart by the step, and
// padded.
Status slice_vjp(Gradients& g) {
  Type x = g.ranked(g.in(0), "Slice");
  auto starts = known_ints(g.in(1)), ends = known_ints(g.in(2)), axes = known_ints(g.in(3));
  auto steps = known_ints(g.in(4));
  if (!starts || !ends || (g.in(3) && !axes) || (g.in(4) && !steps))
    return unsupported("starts, ends, axes and steps must be constants for a gradient");
  std::vector<int64_t> pads(x.rank() * 2, 0);
  Value dx = g.cotangent();
  for (size_t i = 0; i < starts->size(); ++i) {
    TN_TRY(axis, axis_in(axes ? (*axes)[i] : static_cast<int64_t>(i), x.rank(), "axes"));
    auto d = static_cast<size_t>(axis);
    if (x.dims[d] < 0) return unsupported("sliced sizes must be known; bind the shapes first");
    TN_TRY(range, range_of((*starts)[i], (*ends)[i], steps ? (*steps)[i] : 1, x.dims[d]));
    if (range.count == 0) range.start = 0;
    if (range.count <= 1) range.step = 1;  // no second element lies behind the first
    if (range.step < 0) {
      dx = g.op("Slice",
                {dx, g.ints({-1}), g.ints({-range.count - 1}), g.ints({axis}), g.ints({-1})});
      range = {range.start + (range.count - 1) * range.step, range.count, -range.step};
    }
    if (range.step > 1) dx = apart(g, dx, d, range.step);
    pads[d] = range.start;
    pads[d + x.rank()] = x.dims[d] - range.start - range.count * range.step;
  }
  g.set(0, g.op("Pad", {dx, g.ints(pads)}));
  return {};
}

Status slice_batch(Batching& b) {
  size_t rank = b.ranked(b.of().input(0), "Slice").rank();
  std::vector<Value> inputs{b.in(0), b.in(1), b.in(2)};
  std::vector<int64_t> axes;
  if (b.batched(1) || b.batched(2) || b.batched(4))
    return unsupported("starts, ends and steps: expected the same for all examples");
  if (b.in(3)) {
    TN_TRY(stated, stated_ints(b, 3));
    axes = stated;
  } else {
    for (int64_t i = 0; i < b.ranked(b.in(1), "Slice").dims[0]; ++i)
      axes.push_back(i);
  }
  inputs.push_back(b.ints(shifted(axes, rank)));
  if (b.in(4)) inputs.push_back(b.in(4));
  b.set(0, b.op("Slice", inputs));
  return {};
}

constexpr tn_op kSlice = op_row(
    {.type = "Slice",
     .since = 13,
     .quant = "same_scale",
     .shape =
         shape<slice_shape, "x: any, starts: int[n], ends: int[n], axes: int[n]?, steps: int[n]?">,
     .cost = cost<move_cost>,
     .ref = ref<slice_ref>,
     .sample = sample<slice_sample>,
     .vjp = vjp<slice_vjp>,
     .vjp_inputs = 30,
     .vjp_outputs = 0,
     .batch = batch<slice_batch>,
     .coupling = "slice starts=1 ends=2 axes=3 steps=4"});

}  // namespace

TENON_OPS(slice, &kSlice)

}  // namespace tenon::ops
