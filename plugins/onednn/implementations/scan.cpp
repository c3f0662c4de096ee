// SPDX-License-Identifier: Apache-2.0
// Scan: a step that repeats the plan of its body. Slices are read and written where they lie, so
// all are along the first axis.

#include <algorithm>

#include "executable.hpp"
#include "handlers.hpp"

namespace tenon::onednn {
namespace {

// How the inputs and outputs of the node are divided.
struct ScanForm {
  size_t n_states, n_scanned, n_captured;

  explicit ScanForm(const Node& node)
      : n_scanned(static_cast<size_t>(node.integer("num_scan_inputs", 0))),
        n_captured(static_cast<size_t>(node.integer("captures", 0))) {
    n_states = node.inputs.size() - std::min(node.inputs.size(), n_scanned + n_captured);
  }
  bool is_slice(size_t input) const { return input >= n_states && input < n_states + n_scanned; }
};

bool has_other_axes(const Node& node) {
  for (const char* axes : {"scan_input_axes", "scan_output_axes"}) {
    const Dims list = node.integers(axes);
    if (std::any_of(list.begin(), list.end(), [](int64_t axis) { return axis != 0; })) return true;
  }
  return false;
}

// Whether the body's value has the type of the node's, or of a slice of it.
bool agree(const Value& whole, const Value& inner, bool is_slice) {
  if (!inner.is_known || whole.type != inner.type) return false;
  Dims dims = whole.dims;
  if (is_slice && dims.empty()) return false;
  if (is_slice) dims.erase(dims.begin());
  return dims == inner.dims;
}

bool is_reversed(const Node& node, const char* attribute, size_t i) {
  const Dims list = node.integers(attribute);
  return i < list.size() && list[i] != 0;
}

}  // namespace

std::string refuse_scan(const Graph& graph, const Node& node) {
  const std::shared_ptr<const Graph> body = graph.body_of(node);
  const ScanForm form(node);
  if (body == nullptr) return "no body";
  if (has_other_axes(node)) return "slices along another axis than the first";
  if (!body->states.empty()) return "its body has states";
  const size_t n_inputs = form.n_states + form.n_scanned + form.n_captured;
  const bool fits =
      form.n_scanned > 0 && node.inputs.size() == n_inputs && body->inputs.size() == n_inputs &&
      body->outputs.size() == node.outputs.size() && node.outputs.size() >= form.n_states;
  if (!fits) return "another number of inputs or outputs than its body";
  for (size_t i = 0; i < n_inputs; ++i) {
    if (node.inputs[i] == kNone) return "an absent input";
    const Value& inner = body->value(body->inputs[i]);
    if (!agree(graph.value(node.inputs[i]), inner, form.is_slice(i)))
      return "input " + inner.name + " of its body has another type or shape";
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) return "an absent output";
    const Value& inner = body->value(body->outputs[i]);
    if (!agree(graph.value(node.outputs[i]), inner, i >= form.n_states))
      return "output " + inner.name + " of its body has another type or shape";
  }
  return {};
}

void lower_scan(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.node(index);
  const ScanForm form(node);
  if (!lowering.options().compile_body)
    throw CompileError(node.name + ": no compiler for its body");
  auto loop = std::make_shared<Loop>();
  loop->n_states = form.n_states;
  loop->n_captured = form.n_captured;
  loop->length = graph.value(node.inputs[form.n_states]).dims[0];
  loop->body = lowering.options().compile_body(*graph.body_of(node), form.n_captured);
  Step step{.name = node.name, .kernel = "tenon:loop", .always_succeeds = true};
  auto slices = [&](const View& whole, const char* directions, size_t i) -> Loop::Slices {
    return {whole.bytes() / loop->length, is_reversed(node, directions, i)};
  };
  auto add = [&](const View& view) { step.places.push_back(place_of(view)); };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const View view = lowering.read_row_major(node.inputs[i], graph.value(node.inputs[i]).type);
    if (form.is_slice(i))
      loop->scanned.push_back(slices(view, "scan_input_directions", i - form.n_states));
    add(view);
  }
  std::vector<int64_t> state_bytes;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& value = graph.value(node.outputs[i]);
    const View made = lowering.make(node.outputs[i], value.type, row_major_strides(value.dims));
    if (i < form.n_states)
      state_bytes.push_back(made.bytes());
    else
      loop->collected.push_back(slices(made, "scan_output_directions", i - form.n_states));
    add(made);
  }
  for (int64_t bytes : state_bytes)
    step.places.push_back({lowering.scratch(bytes), 0});
  step.places.push_back({lowering.scratch(loop->body->workspace_bytes()), 0});
  const Plan& body = loop->body->plan();
  for (const Step& one : body.steps) {
    step.flops += static_cast<double>(loop->length) * one.flops;
    step.bytes += static_cast<double>(loop->length) * one.bytes;
    step.always_succeeds &= one.primitive || one.always_succeeds;
  }
  lowering.plan().packed_bytes += body.packed_bytes;
  step.loop = std::move(loop);
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn
