// SPDX-License-Identifier: Apache-2.0
#include "repeated.hpp"

#include "executable.hpp"

namespace tenon::onednn {
namespace {

// Whether the body's value has the type of the node's, or of a slice of it.
bool agree(const Value& whole, const Value& inner, bool is_slice) {
  if (!inner.is_known || whole.type != inner.type) return false;
  Dims dims = whole.dims;
  if (is_slice && dims.empty()) return false;
  if (is_slice) dims.erase(dims.begin());
  return dims == inner.dims;
}

bool is_reversed(const Node& node, const char* attribute, size_t i) {
  if (attribute == nullptr) return false;
  const Dims list = node.integers(attribute);
  return i < list.size() && list[i] != 0;
}

}  // namespace

std::string refuse_repeated(const Graph& graph, const Node& node, const RepeatedForm& form) {
  const std::shared_ptr<const Graph> body = graph.body_of(node);
  if (body == nullptr) return "no body";
  if (!body->states.empty()) return "its body has states";
  const size_t n_outputs = node.outputs.size();
  const bool fits = node.inputs.size() == form.n_inputs() &&
                    body->inputs.size() == form.n_inputs() && n_outputs >= form.n_states &&
                    body->outputs.size() == n_outputs + form.n_control_outputs;
  if (!fits) return "another number of inputs or outputs than its body";
  for (size_t i = form.n_control; i < form.n_inputs(); ++i) {
    if (node.inputs[i] == kNone) return "an absent input";
    const Value& inner = body->value(body->inputs[i]);
    if (!agree(graph.value(node.inputs[i]), inner, form.is_scanned(i)))
      return "input " + inner.name + " of its body has another type or shape";
  }
  for (size_t i = 0; i < n_outputs; ++i) {
    if (node.outputs[i] == kNone) return "an absent output";
    const Value& inner = body->value(body->outputs[form.n_control_outputs + i]);
    if (!agree(graph.value(node.outputs[i]), inner, i >= form.n_states))
      return "output " + inner.name + " of its body has another type or shape";
  }
  return {};
}

Repeated lower_repeated(Lowering& lowering,
                        const Node& node,
                        const Graph& body,
                        const RepeatedForm& form,
                        int64_t length) {
  const Graph& graph = lowering.graph();
  if (!lowering.options().compile_body)
    throw CompileError(node.name + ": no compiler for its body");
  auto loop = std::make_shared<Loop>();
  loop->n_states = form.n_states;
  loop->n_captured = form.n_captured;
  loop->length = length;
  loop->body = lowering.options().compile_body(body, form.n_captured);
  Step step{.name = node.name, .kernel = "tenon:loop", .always_succeeds = true};
  auto slices = [&](const View& whole, const char* directions, size_t i) -> Loop::Slices {
    return {whole.bytes() / length, is_reversed(node, directions, i)};
  };
  auto add = [&](const View& view) { step.places.push_back(place_of(view)); };
  for (size_t i = form.n_control; i < node.inputs.size(); ++i) {
    const View view = lowering.read_row_major(node.inputs[i], graph.value(node.inputs[i]).type);
    if (form.is_scanned(i))
      loop->scanned.push_back(slices(view, form.scanned_directions, i - form.first_scanned()));
    add(view);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& value = graph.value(node.outputs[i]);
    const View made = lowering.make(node.outputs[i], value.type, row_major_strides(value.dims));
    if (i < form.n_states)
      loop->state_bytes.push_back(made.bytes());
    else
      loop->collected.push_back(slices(made, form.collected_directions, i - form.n_states));
    add(made);
  }
  for (int64_t bytes : loop->state_bytes)
    step.places.push_back({lowering.scratch(bytes), 0});
  step.places.push_back({lowering.scratch(loop->body->workspace_bytes()), 0});
  const Plan& plan = loop->body->plan();
  for (const Step& one : plan.steps) {
    step.flops += static_cast<double>(length) * one.flops;
    step.bytes += static_cast<double>(length) * one.bytes;
    step.always_succeeds &= one.primitive || one.always_succeeds;
  }
  lowering.plan().packed_bytes += plan.packed_bytes;
  return {std::move(step), std::move(loop)};
}

}  // namespace tenon::onednn
