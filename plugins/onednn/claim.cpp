// SPDX-License-Identifier: Apache-2.0
#include "claim.hpp"

#include "handlers/handlers.hpp"

namespace tenon::onednn {
namespace {

std::string unknown_value(const Imported& imported, int value) {
  if (value == kNone || imported.is_known[value]) return {};
  const Value& v = imported.graph.values[value];
  if (v.type == ElementType::kCount) {
    return "value " + v.name + " has type " + dtype_name(imported.dtypes[value]);
  }
  return "the shape of value " + v.name + " depends on data";
}

// Shape operators that only need numbers on the side move any known type; what computes on half
// precision is left to the reference.
bool holds_halves(const Imported& imported, const Node& node) {
  for (const std::vector<int>* list : {&node.inputs, &node.outputs}) {
    for (int value : *list) {
      if (value == kNone) continue;
      ElementType type = imported.graph.values[value].type;
      if (type == ElementType::kBf16 || type == ElementType::kF16) return true;
    }
  }
  return false;
}

}  // namespace

std::string why_not(const Imported& imported, int index) {
  const Node& node = imported.graph.nodes[index];
  if (!imported.unbound[index].empty() && find_handler(node.op)->op.empty()) {
    return imported.unbound[index];
  }
  for (int input : node.inputs) {
    if (std::string why = unknown_value(imported, input); !why.empty()) return why;
  }
  for (int output : node.outputs) {
    if (std::string why = unknown_value(imported, output); !why.empty()) return why;
  }
  if (node.outputs.empty() || node.outputs[0] == kNone) return "no first output";
  if (node.inputs.empty() || node.inputs[0] == kNone) return "no first input";
  if (holds_halves(imported, node)) return "bf16 or f16 in the graph (ask for precision instead)";
  for (int output : node.outputs) {
    if (output != kNone && imported.graph.values[output].count() == 0) return "empty tensor";
  }
  return find_handler(node.op)->refuse(imported.graph, node);
}

std::vector<int> claim_group(const Imported& imported, int index) {
  const Graph& graph = imported.graph;
  std::vector<int> group = {index};
  for (int input : graph.nodes[index].inputs) {
    int producer = input == kNone ? kNone : graph.values[input].producer;
    if (producer == kNone || graph.nodes[producer].op != "DequantizeLinear") continue;
    bool is_constant = graph.values[graph.nodes[producer].inputs[0]].data != nullptr;
    bool is_private = graph.values[input].users.size() == 1 && graph.values[input].n_outputs == 0;
    if (is_constant && is_private && why_not(imported, producer).empty()) group.push_back(producer);
  }
  return group;
}

}  // namespace tenon::onednn
