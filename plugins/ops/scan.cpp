// SPDX-License-Identifier: Apache-2.0
// Scan.
#include <algorithm>

#include "bodies.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

int64_t at_or(const std::vector<int64_t>& list, size_t i, int64_t fallback) {
  return i < list.size() ? list[i] : fallback;
}

Status scan_shape(EditView edit, Node node) {
  Graph body = graph_of(node, "body");
  if (!body.raw) return invalid("attribute body: expected a graph, got none");
  std::vector<Value> results = body.outputs();
  uint64_t scanned = static_cast<uint64_t>(node.attr_int("num_scan_inputs"));
  uint64_t rest = static_cast<uint64_t>(node.attr_int("captures")) + scanned;
  if (scanned < 1 || node.n_inputs() < rest || results.size() < node.n_outputs())
    return invalid("expected states, then num_scan_inputs inputs, and as many outputs as body");
  uint64_t n_states = node.n_inputs() - rest;
  Type first = node.input(n_states).type();
  Dim length;
  if (first.ranked) {
    TN_TRY(axis, axis_in(at_or(node.attr_ints("scan_input_axes"), 0, 0), first.rank()));
    length = dims_of(first)[static_cast<size_t>(axis)];
  }
  std::vector<int64_t> axes = node.attr_ints("scan_output_axes");
  for (uint64_t i = 0; i < node.n_outputs(); ++i) {
    Type type = results[i].type();
    if (i < n_states) {
      TN_CHECK(set_output(edit, node, i, common(node.input(i).type(), type)));
      continue;
    }
    if (!type.ranked) {
      TN_CHECK(set_output(edit, node, i, type));
      continue;
    }
    Dims dims = dims_of(type);
    for (Dim& dim : dims)
      if (!dim.known()) dim = Dim();
    TN_TRY(axis, axis_in(at_or(axes, i - n_states, 0), dims.size() + 1, "scan_output_axes"));
    dims.insert(dims.begin() + axis, length);
    TN_CHECK(set_output(edit, node, i, type.dtype, dims));
  }
  return {};
}

// Slice `index` along `axis`, as a tensor of its own.
Result<Tensor> slice_of(const Call& call, const DLTensor& in, int64_t axis, int64_t index) {
  std::vector<int64_t> shape = to_vector(shape_of(in));
  AxisSplit split(shape, axis);
  shape.erase(shape.begin() + axis);
  TN_TRY(made, Tensor::zeros(call.ctx(), dtype_of(in), shape));
  Cells from(in), to(made.dl());
  for (int64_t o = 0; o < split.outer; ++o)
    to.copy(o * split.inner, from, (o * split.size + index) * split.inner, split.inner);
  to.flush();
  return made;
}

Status scan_ref(const Call& call) {
  TN_TRY(body, body_of(call, "body"));
  Node node = call.node();
  auto captures = static_cast<uint64_t>(node.attr_int("captures"));
  auto scanned = static_cast<uint64_t>(node.attr_int("num_scan_inputs"));
  if (scanned < 1 || call.n_in() < scanned + captures ||
      node.n_outputs() < call.n_in() - scanned - captures)
    return invalid("expected states, then num_scan_inputs inputs");
  size_t n_states = call.n_in() - scanned - captures, n_out = node.n_outputs();
  std::vector<int64_t> axes = node.attr_ints("scan_input_axes");
  std::vector<int64_t> backwards = node.attr_ints("scan_input_directions");
  std::vector<DLTensor> states;
  for (size_t i = 0; i < n_states; ++i)
    states.push_back(call.in(i));
  int64_t length = -1;
  for (size_t i = 0; i < scanned; ++i) {
    const DLTensor& in = call.in(n_states + i);
    TN_TRY(axis, axis_in(at_or(axes, i, 0), static_cast<size_t>(in.ndim), "scan_input_axes"));
    axes.resize(std::max(axes.size(), i + 1));
    axes[i] = axis;
    if (length >= 0 && in.shape[axis] != length)
      return invalid(cat("scan input ", i, ": expected ", length, " steps, got ", in.shape[axis]));
    length = in.shape[axis];
  }
  std::vector<Tensor> held;
  std::vector<std::vector<Tensor>> scans(n_out - n_states);
  for (int64_t step = 0; step < length; ++step) {
    TN_CHECK(call.cancel().check());
    std::vector<DLTensor> in = states;
    std::vector<Tensor> slices;
    for (size_t i = 0; i < scanned; ++i) {
      int64_t at = at_or(backwards, i, 0) ? length - 1 - step : step;
      TN_TRY(slice, slice_of(call, call.in(n_states + i), axes[i], at));
      slices.push_back(slice);
      in.push_back(slice.dl());
    }
    for (uint64_t c = call.n_in() - captures; c < call.n_in(); ++c)
      in.push_back(call.in(c));
    TN_TRY(results, run_body(call, *body, in, n_out));
    held = results;
    for (size_t s = 0; s < n_states; ++s)
      states[s] = held[s].dl();
    for (size_t s = 0; s < scans.size(); ++s)
      scans[s].push_back(results[n_states + s]);
  }
  for (size_t s = 0; s < n_states; ++s)
    TN_CHECK(copy_out(call, s, states[s]));
  std::vector<int64_t> out_axes = node.attr_ints("scan_output_axes");
  std::vector<int64_t> out_backwards = node.attr_ints("scan_output_directions");
  std::vector<Value> declared = graph_of(node, "body").outputs();
  for (size_t s = 0; s < scans.size(); ++s)
    TN_CHECK(join(call, n_states + s, scans[s], at_or(out_axes, s, 0),
                  at_or(out_backwards, s, 0) != 0, declared[n_states + s]));
  return {};
}

Result<Node> scan_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  int64_t width = random.integer(1, 4);
  TN_TRY(start, random.input(TN_F32, {width}));
  TN_TRY(x, random.input(TN_F32, {random.integer(1, 4), width}));
  TN_TRY(body, make_body(edit, [&](const Edit& inner) -> Status {
           TN_TRY(state, inner.input("state", Type(TN_F32, {width})));
           TN_TRY(item, inner.input("item", Type(TN_F32, {width})));
           TN_TRY(next, inner.op("Add", {state, item}));
           TN_TRY(kept, inner.op("Identity", {next}));
           TN_CHECK(inner.output("next", next));
           return inner.output("kept", kept);
         }));
  return edit.add({.type = "Scan",
                   .inputs = {start, x},
                   .attrs = {{"body", any_graph(body.get())}, {"num_scan_inputs", 1}},
                   .n_outputs = 2});
}

constexpr tn_op kScan = op_row({.type = "Scan",
                                .since = 25,
                                .traits = kControl,
                                .attributes = R"([{"name": "body", "type": "graph"},
                              {"name": "captures", "type": "int", "default": 0},
                              {"name": "num_scan_inputs", "type": "int"},
                              {"name": "scan_input_axes", "type": "ints"},
                              {"name": "scan_input_directions", "type": "ints"},
                              {"name": "scan_output_axes", "type": "ints"},
                              {"name": "scan_output_directions", "type": "ints"}])",
                                .shape = shape<scan_shape>,
                                .ref = ref<scan_ref>,
                                .sample = sample<scan_sample>});

}  // namespace

TENON_OPS(scan, &kScan)

}  // namespace tenon::ops
