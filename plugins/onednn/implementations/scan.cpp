// SPDX-License-Identifier: Apache-2.0
// Scan: a step that repeats the plan of its body. Slices are read and written where they lie, so
// all are along the first axis.

#include <algorithm>

#include "handlers.hpp"
#include "repeated.hpp"

namespace tenon::onednn {
namespace {

RepeatedForm form_of(const Node& node) {
  RepeatedForm form;
  form.n_scanned = static_cast<size_t>(node.integer("num_scan_inputs", 0));
  form.n_captured = static_cast<size_t>(node.integer("captures", 0));
  form.n_states =
      node.inputs.size() - std::min(node.inputs.size(), form.n_scanned + form.n_captured);
  form.scanned_directions = "scan_input_directions";
  form.collected_directions = "scan_output_directions";
  return form;
}

bool has_other_axes(const Node& node) {
  for (const char* axes : {"scan_input_axes", "scan_output_axes"}) {
    const Dims list = node.integers(axes);
    if (std::any_of(list.begin(), list.end(), [](int64_t axis) { return axis != 0; })) return true;
  }
  return false;
}

}  // namespace

std::string refuse_scan(const Graph& graph, const Node& node) {
  const RepeatedForm form = form_of(node);
  if (has_other_axes(node)) return "slices along another axis than the first";
  if (form.n_scanned == 0) return "nothing to scan";
  return refuse_repeated(graph, node, form);
}

void lower_scan(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.node(index);
  const RepeatedForm form = form_of(node);
  const int64_t length = graph.value(node.inputs[form.first_scanned()]).dims[0];
  auto [step, loop] = lower_repeated(lowering, node, *graph.body_of(node), form, length);
  step.loop = std::move(loop);
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn
