// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan. Bodies are closed: what they capture are trailing inputs of the node and of
// each body, counted by the attribute "captures". The host compiles the bodies.
#include <algorithm>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

// Results of one run of a body.
struct Results {
  tn_ctx* ctx;
  std::vector<Tensor> tensors;
  tn_outputs raw{this, [](void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
                   auto& results = *static_cast<Results*>(self);
                   return guard([&]() -> Status {
                     if (results.tensors.size() <= i) results.tensors.resize(i + 1);
                     TN_TRY(made, Tensor::zeros(results.ctx, dtype_of(*proto), shape_of(*proto)));
                     *out = made.dl();
                     results.tensors[i] = made;
                     return {};
                   });
                 }};
  explicit Results(tn_ctx* owner) : ctx(owner) {}
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
};

Result<std::vector<Tensor>> run_body(const Call& call,
                                     const tn_body& body,
                                     const std::vector<DLTensor>& in,
                                     size_t n_out) {
  std::vector<const DLTensor*> pointers;
  for (const DLTensor& tensor : in)
    pointers.push_back(&tensor);
  Results results(call.ctx());
  TN_CHECK(body.run(body.ctx, pointers.data(), pointers.size(), &results.raw));
  if (results.tensors.size() < n_out)
    return invalid(cat("body: expected ", n_out, " outputs, got ", results.tensors.size()));
  return std::move(results.tensors);
}

Result<const tn_body*> body_of(const Call& call, std::string_view name) {
  const tn_body* body = call.body(name);
  if (!body) return invalid(cat("attribute ", name, ": expected a graph, got none"));
  return body;
}

Graph graph_of(Node node, std::string_view name) {
  tn_any any = node.attr(name);
  return {any.tag == TN_ANY_GRAPH ? static_cast<const tn_graph*>(any.v.p) : nullptr};
}

Status copy_out(const Call& call, uint64_t i, const DLTensor& from) {
  TN_TRY(out, call.out(i, dtype_of(from), shape_of(from)));
  uint64_t bytes = bytes_of(dtype_of(from), element_count(from));
  if (bytes > 0) std::memcpy(data_of<char>(out), data_of<char>(from), bytes);
  return {};
}

// What two types have in common.
Type common(const Type& a, const Type& b) {
  if (!a.ranked || !b.ranked || a.rank() != b.rank()) return unranked(a.dtype);
  Dims left = dims_of(a), right = dims_of(b);
  for (size_t i = 0; i < left.size(); ++i)
    if (!(left[i] == right[i])) left[i] = Dim();
  return type_of(a.dtype, left);
}

Status if_shape(EditView edit, Node node) {
  Graph first = graph_of(node, "then_branch"), second = graph_of(node, "else_branch");
  if (!first.raw || !second.raw) return invalid("expected then_branch and else_branch");
  std::vector<Value> a = first.outputs(), b = second.outputs();
  if (a.size() != b.size() || a.size() < node.n_outputs())
    return invalid(cat("branches: expected ", node.n_outputs(), " outputs each, got ", a.size(),
                       " and ", b.size()));
  for (size_t i = 0; i < node.n_outputs(); ++i)
    TN_CHECK(set_output(edit, node, i, common(a[i].type(), b[i].type())));
  return {};
}

Status if_ref(const Call& call) {
  if (element_count(call.in(0)) != 1) return invalid("cond: expected one element");
  TN_TRY(body, body_of(call, *call.data<bool>(0) ? "then_branch" : "else_branch"));
  const tn_op_call& raw = call.raw();
  return Status(body->run(body->ctx, raw.in + 1, raw.n_in - 1, raw.outputs));
}

// The values that scan outputs collect, one per iteration, joined along a new axis.
Status join(const Call& call,
            uint64_t i,
            const std::vector<Tensor>& items,
            int64_t stated_axis,
            bool reverse,
            Value declared) {
  if (items.empty()) {
    Type type = declared.type();
    std::vector<int64_t> shape{0};
    for (int64_t dim : type.dims)
      shape.push_back(std::max<int64_t>(dim, 0));
    return call.out(i, type.dtype, shape).status();
  }
  DLTensor first = items[0].dl();
  TN_TRY(axis, axis_in(stated_axis, static_cast<size_t>(first.ndim) + 1, "scan_output_axes"));
  std::vector<int64_t> shape = to_vector(shape_of(first));
  shape.insert(shape.begin() + axis, static_cast<int64_t>(items.size()));
  TN_TRY(out, call.out(i, dtype_of(first), shape));
  AxisSplit split(shape, axis);
  Cells to(out);
  for (size_t k = 0; k < items.size(); ++k) {
    DLTensor item = items[reverse ? items.size() - 1 - k : k].dl();
    if (to_vector(shape_of(item)) != to_vector(shape_of(first)))
      return invalid("scan outputs: expected one shape in all iterations");
    Cells from(item);
    for (int64_t o = 0; o < split.outer; ++o)
      to.copy((o * split.size + int64_t(k)) * split.inner, from, o * split.inner, split.inner);
  }
  to.flush();
  return {};
}

Status loop_shape(EditView edit, Node node) {
  Graph body = graph_of(node, "body");
  if (!body.raw) return invalid("attribute body: expected a graph, got none");
  std::vector<Value> results = body.outputs();
  int64_t captures = node.attr_int("captures");
  uint64_t n_states = node.n_inputs() - 2 - static_cast<uint64_t>(captures);
  if (results.size() < node.n_outputs() + 1)
    return invalid(cat("body: expected ", node.n_outputs() + 1, " outputs, got ", results.size()));
  for (uint64_t i = 0; i < node.n_outputs(); ++i) {
    Type type = results[i + 1].type();
    if (i < n_states) {
      TN_CHECK(set_output(edit, node, i, common(node.input(i + 2).type(), type)));
    } else if (type.ranked) {
      Dims dims = dims_of(type);
      // Symbols inside a body are the body's own.
      for (Dim& dim : dims)
        if (!dim.known()) dim = Dim();
      dims.insert(dims.begin(), Dim());
      TN_CHECK(set_output(edit, node, i, type.dtype, dims));
    } else {
      TN_CHECK(set_output(edit, node, i, type));
    }
  }
  return {};
}

Status loop_ref(const Call& call) {
  TN_TRY(body, body_of(call, "body"));
  auto captures = static_cast<uint64_t>(call.node().attr_int("captures"));
  if (call.n_in() < 2 + captures) return invalid("expected M, cond, states and captures");
  size_t n_states = call.n_in() - 2 - captures, n_out = call.node().n_outputs();
  if (n_out < n_states)
    return invalid(cat("expected at least ", n_states, " outputs, got ", n_out));
  int64_t limit = call.has(0) ? read_ints(call.in(0)).at(0) : INT64_MAX;
  bool go = !call.has(1) || *call.data<bool>(1);
  std::vector<DLTensor> states;
  for (size_t i = 0; i < n_states; ++i)
    states.push_back(call.in(2 + i));
  std::vector<Tensor> held;
  std::vector<std::vector<Tensor>> scans(n_out - n_states);
  for (int64_t i = 0; go && i < limit; ++i) {
    TN_CHECK(call.cancel().check());
    DenseView index(TN_I64, {}, &i), condition(TN_BOOL, {}, &go);
    std::vector<DLTensor> in{*index, *condition};
    in.insert(in.end(), states.begin(), states.end());
    for (uint64_t c = call.n_in() - captures; c < call.n_in(); ++c)
      in.push_back(call.in(c));
    TN_TRY(results, run_body(call, *body, in, 1 + n_out));
    go = *results[0].data<bool>();
    held = results;
    for (size_t s = 0; s < n_states; ++s)
      states[s] = held[1 + s].dl();
    for (size_t s = 0; s < scans.size(); ++s)
      scans[s].push_back(results[1 + n_states + s]);
  }
  for (size_t s = 0; s < n_states; ++s)
    TN_CHECK(copy_out(call, s, states[s]));
  std::vector<Value> declared = graph_of(call.node(), "body").outputs();
  for (size_t s = 0; s < scans.size(); ++s)
    TN_CHECK(join(call, n_states + s, scans[s], 0, false, declared[1 + n_states + s]));
  return {};
}

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

// A body in the making: build(edit) adds inputs, nodes and outputs.
template <class Build>
Result<OwnedGraph> make_body(EditView outer, const Build& build) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(outer.ctx(), &raw));
  OwnedGraph graph = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  TN_CHECK(build(edit));
  TN_CHECK(edit.commit());
  return Result<OwnedGraph>(std::move(graph));
}

Result<Node> if_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  TN_TRY(cond, random.input(TN_BOOL, {}));
  TN_TRY(x, random.input(TN_F32, dims));
  auto branch = [&](const char* type) {
    return make_body(edit, [&](const Edit& inner) -> Status {
      TN_TRY(in, inner.input("x", Type(TN_F32, dims)));
      TN_TRY(out, inner.op(type, {in}));
      return inner.output("y", out);
    });
  };
  TN_TRY(yes, branch("Exp"));
  TN_TRY(no, branch("Neg"));
  return edit.add({.type = "If",
                   .inputs = {cond, x},
                   .attrs = {{"then_branch", any_graph(yes.get())},
                             {"else_branch", any_graph(no.get())},
                             {"captures", 1}}});
}

// The state doubles, and each iteration leaves a copy of it.
Result<Node> loop_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 2);
  TN_TRY(times, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(1, 4)}));
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(body, make_body(edit, [&](const Edit& inner) -> Status {
           TN_TRY(i, inner.input("i", Type(TN_I64, {})));
           (void)i;
           TN_TRY(cond, inner.input("cond", Type(TN_BOOL, {})));
           TN_TRY(state, inner.input("state", Type(TN_F32, dims)));
           TN_TRY(next, inner.op("Add", {state, state}));
           TN_TRY(again, inner.op("Identity", {cond}));
           TN_TRY(kept, inner.op("Identity", {next}));
           TN_CHECK(inner.output("again", again));
           TN_CHECK(inner.output("next", next));
           return inner.output("kept", kept);
         }));
  return edit.add({.type = "Loop",
                   .inputs = {times, Value{}, x},
                   .attrs = {{"body", any_graph(body.get())}},
                   .n_outputs = 2});
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

constexpr uint32_t kControl = TN_OP_CONTROL | TN_OP_DATA_SHAPE;
constexpr tn_op kIf = op_row({.type = "If",
                              .since = 25,
                              .traits = kControl,
                              .attributes = R"([{"name": "then_branch", "type": "graph"},
                                                {"name": "else_branch", "type": "graph"},
                                                {"name": "captures", "type": "int", "default": 0}])",
                              .shape = shape<if_shape>,
                              .ref = ref<if_ref>,
                              .sample = sample<if_sample>});
constexpr tn_op kLoop = op_row({.type = "Loop",
                                .since = 25,
                                .traits = kControl,
                                .attributes = R"([{"name": "body", "type": "graph"},
                                                  {"name": "captures", "type": "int", "default": 0}])",
                                .shape = shape<loop_shape>,
                                .ref = ref<loop_ref>,
                                .sample = sample<loop_sample>});
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

TENON_OPS(control, &kIf, &kLoop, &kScan)

}  // namespace tenon::ops
