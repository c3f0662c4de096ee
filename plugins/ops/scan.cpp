// SPDX-License-Identifier: Apache-2.0
// Scan.
#include <algorithm>
#include <optional>

#include "bodies.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

int64_t at_or(const std::vector<int64_t>& list, size_t i, int64_t fallback) {
  return i < list.size() ? list[i] : fallback;
}

// The types that the body sees: those of the node's inputs, of which the scanned ones have lost an
// axis.
Result<std::vector<Type>> body_inputs(Node node, uint64_t n_states, uint64_t scanned) {
  const std::vector<int64_t> axes = node.attr_ints("scan_input_axes");
  std::vector<Type> out;
  for (uint64_t i = 0; i < node.n_inputs(); ++i) {
    Type type = node.input(i).type();
    if (i >= n_states && i < n_states + scanned && type.ranked) {
      TN_TRY(axis, axis_in(at_or(axes, i - n_states, 0), type.rank()));
      type.dims.erase(type.dims.begin() + axis);
      if (!type.symbols.empty()) type.symbols.erase(type.symbols.begin() + axis);
    }
    out.push_back(std::move(type));
  }
  return out;
}

Status scan_shape(EditView edit, Node node) {
  Graph body = graph_of(node, "body");
  if (!body.raw) return invalid("attribute body: expected a graph, got none");
  std::vector<Value> results = body.outputs();
  TN_TRY(captures, captures_of(node));
  const int64_t n_scanned = node.attr_int("num_scan_inputs");
  const auto scanned = static_cast<uint64_t>(n_scanned);
  if (n_scanned < 1 || scanned > node.n_inputs() - captures || results.size() < node.n_outputs())
    return invalid("expected states, then num_scan_inputs inputs, and as many outputs as body");
  uint64_t n_states = node.n_inputs() - captures - scanned;
  Type first = node.input(n_states).type();
  Dim length;
  if (first.ranked) {
    TN_TRY(axis, axis_in(at_or(node.attr_ints("scan_input_axes"), 0, 0), first.rank()));
    length = dims_of(first)[static_cast<size_t>(axis)];
  }
  std::vector<int64_t> axes = node.attr_ints("scan_output_axes");
  TN_TRY(given, body_inputs(node, n_states, scanned));
  const std::vector<Type> types = repeated_types(body, given, 0, n_states);
  for (uint64_t i = 0; i < node.n_outputs(); ++i) {
    const Type& type = types[i];
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

// Whether a slice along the axis is memory in one piece.
bool is_one_piece(uint32_t dtype, int64_t axis) {
  return axis == 0 && dl_dtype(dtype).bits >= 8;
}

// Slice `index` of all along the first axis, where it lies.
DenseView slice_in(const DLTensor& all, int64_t index) {
  std::vector<int64_t> shape = to_vector(shape_of(all));
  shape.erase(shape.begin());
  DenseView out(dtype_of(all), shape);
  uint64_t bytes = bytes_of(dtype_of(all), element_count(*out));
  return DenseView(dtype_of(all), shape, data_of<char>(all) + static_cast<uint64_t>(index) * bytes);
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

bool is_alike(const DLTensor& a, const DLTensor& b) {
  return dtype_of(a) == dtype_of(b) && std::ranges::equal(shape_of(a), shape_of(b));
}

// Where the steps of a Scan write. A state has two buffers, of which a step reads one and writes
// the other; what is collected along the first axis goes to its place in the output at once.
class StepResults {
 public:
  StepResults(const Call& call, size_t n_states, size_t n_out, int64_t length)
      : call_(call), length_(length), states_(n_states), collected_(n_out - n_states) {
    std::vector<int64_t> axes = call.node().attr_ints("scan_output_axes"),
                         ways = call.node().attr_ints("scan_output_directions");
    for (size_t i = 0; i < collected_.size(); ++i) {
      collected_[i].axis = at_or(axes, i, 0);
      collected_[i].is_reversed = at_or(ways, i, 0) != 0;
    }
  }
  StepResults(const StepResults&) = delete;
  StepResults& operator=(const StepResults&) = delete;

  Status run(const tn_body& body, const std::vector<DLTensor>& in, int64_t step) {
    step_ = step;
    n_given_ = 0;
    std::vector<const DLTensor*> pointers;
    for (const DLTensor& tensor : in)
      pointers.push_back(&tensor);
    TN_CHECK(Status(body.run(body.ctx, pointers.data(), pointers.size(), &raw_)));
    size_t n_out = states_.size() + collected_.size();
    if (n_given_ >= n_out) return {};
    return invalid(cat("body: expected ", n_out, " outputs, got ", n_given_));
  }
  // After the step that ran last.
  DLTensor state(size_t i) const { return states_[i].buffers[step_ % 2].dl(); }

  Status finish() {
    for (size_t i = 0; i < collected_.size(); ++i) {
      const Collected& one = collected_[i];
      if (one.whole) continue;
      TN_CHECK(join(call_, states_.size() + i, one.items, one.axis, one.is_reversed, {}));
    }
    return {};
  }

 private:
  struct State {
    Tensor buffers[2];
  };
  struct Collected {
    int64_t axis = 0;
    bool is_reversed = false;
    std::optional<DLTensor> whole;
    std::optional<DenseView> slice;
    std::vector<Tensor> items;  // where it is not collected in place
  };

  static tn_status* give(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    return guard([&]() -> Status {
      auto& results = *static_cast<StepResults*>(self);
      results.n_given_ = std::max<size_t>(results.n_given_, i + 1);
      size_t n_states = results.states_.size();
      if (i < n_states) return results.give_state(results.states_[i], *proto, out);
      return results.give_slice(i, results.collected_.at(i - n_states), *proto, out);
    });
  }

  Status give_state(State& state, const DLTensor& proto, DLTensor* out) const {
    Tensor& mine = state.buffers[step_ % 2];
    if (!mine || !is_alike(mine.dl(), proto)) {
      TN_TRY(made, Tensor::zeros(call_.ctx(), dtype_of(proto), shape_of(proto)));
      mine = std::move(made);
    }
    *out = mine.dl();
    return {};
  }

  Status give_slice(uint64_t i, Collected& one, const DLTensor& proto, DLTensor* out) const {
    if (!is_one_piece(dtype_of(proto), one.axis)) {
      TN_TRY(made, Tensor::zeros(call_.ctx(), dtype_of(proto), shape_of(proto)));
      *out = made.dl();
      one.items.push_back(std::move(made));
      return {};
    }
    if (!one.whole) {
      std::vector<int64_t> shape = to_vector(shape_of(proto));
      shape.insert(shape.begin(), length_);
      TN_TRY(whole, call_.out(i, dtype_of(proto), shape));
      one.whole = whole;
    }
    one.slice = slice_in(*one.whole, one.is_reversed ? length_ - 1 - step_ : step_);
    if (!is_alike(**one.slice, proto))
      return invalid("scan outputs: expected one shape in all iterations");
    *out = **one.slice;
    return {};
  }

  const Call& call_;
  int64_t length_, step_ = 0;
  size_t n_given_ = 0;
  std::vector<State> states_;
  std::vector<Collected> collected_;
  tn_outputs raw_{this, give};
};

// The slices that the steps read.
class Slices {
 public:
  Slices(const Call& call, size_t first, size_t count) : call_(call), first_(first) {
    axes_ = call.node().attr_ints("scan_input_axes");
    axes_.resize(count);
    backwards_ = call.node().attr_ints("scan_input_directions");
  }
  // The number of steps.
  Result<int64_t> length() {
    int64_t length = -1;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const DLTensor& in = call_.in(first_ + i);
      TN_TRY(axis, axis_in(axes_[i], static_cast<size_t>(in.ndim), "scan_input_axes"));
      axes_[i] = axis;
      if (length >= 0 && in.shape[axis] != length)
        return invalid(
            cat("scan input ", i, ": expected ", length, " steps, got ", in.shape[axis]));
      length = in.shape[axis];
    }
    return length;
  }
  // Of one slice each; after length().
  std::vector<Type> types() const {
    std::vector<Type> out;
    for (size_t i = 0; i < axes_.size(); ++i) {
      out.push_back(type_of(call_.in(first_ + i)));
      out.back().dims.erase(out.back().dims.begin() + axes_[i]);
    }
    return out;
  }
  // Behind what is there; they live until the next call.
  Status add(std::vector<DLTensor>& to, int64_t step, int64_t length) {
    views_.clear();
    views_.reserve(axes_.size());
    copies_.clear();
    for (size_t i = 0; i < axes_.size(); ++i) {
      const DLTensor& all = call_.in(first_ + i);
      int64_t at = at_or(backwards_, i, 0) ? length - 1 - step : step;
      if (is_one_piece(dtype_of(all), axes_[i])) {
        views_.push_back(slice_in(all, at));
        to.push_back(*views_.back());
      } else {
        TN_TRY(copy, slice_of(call_, all, axes_[i], at));
        to.push_back(copy.dl());
        copies_.push_back(std::move(copy));
      }
    }
    return {};
  }

 private:
  const Call& call_;
  size_t first_;
  std::vector<int64_t> axes_, backwards_;
  std::vector<DenseView> views_;
  std::vector<Tensor> copies_;
};

// The results of no steps: the states as they were, and nothing of what steps would have given.
Status give_none(const Call& call, const Slices& slices, size_t n_states, uint64_t captures) {
  std::vector<Type> given;
  for (size_t i = 0; i < n_states; ++i) {
    TN_CHECK(copy_out(call, i, call.in(i)));
    given.push_back(type_of(call.in(i)));
  }
  for (Type& type : slices.types())
    given.push_back(std::move(type));
  for (uint64_t c = call.n_in() - captures; c < call.n_in(); ++c)
    given.push_back(type_of(call.in(c)));
  const std::vector<Type> types = repeated_types(graph_of(call.node(), "body"), given, 0, n_states);
  const std::vector<int64_t> axes = call.node().attr_ints("scan_output_axes");
  for (size_t i = n_states; i < call.node().n_outputs(); ++i)
    TN_CHECK(join(call, i, {}, at_or(axes, i - n_states, 0), false, types[i]));
  return {};
}

Status scan_ref(const Call& call) {
  TN_TRY(body, body_of(call, "body"));
  Node node = call.node();
  auto captures = static_cast<uint64_t>(node.attr_int("captures"));
  auto scanned = static_cast<uint64_t>(node.attr_int("num_scan_inputs"));
  if (scanned < 1 || call.n_in() < scanned + captures ||
      node.n_outputs() < call.n_in() - scanned - captures)
    return invalid("expected states, then num_scan_inputs inputs");
  size_t n_states = call.n_in() - scanned - captures;
  Slices slices(call, n_states, scanned);
  TN_TRY(length, slices.length());
  if (length == 0) return give_none(call, slices, n_states, captures);
  StepResults results(call, n_states, node.n_outputs(), length);
  for (int64_t step = 0; step < length; ++step) {
    TN_CHECK(call.cancel().check());
    std::vector<DLTensor> in;
    for (size_t i = 0; i < n_states; ++i)
      in.push_back(step == 0 ? call.in(i) : results.state(i));
    TN_CHECK(slices.add(in, step, length));
    for (uint64_t c = call.n_in() - captures; c < call.n_in(); ++c)
      in.push_back(call.in(c));
    TN_CHECK(results.run(*body, in, step));
  }
  for (size_t i = 0; i < n_states; ++i)
    TN_CHECK(copy_out(call, i, results.state(i)));
  return results.finish();
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
