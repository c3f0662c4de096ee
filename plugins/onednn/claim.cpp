// SPDX-License-Identifier: Apache-2.0
#include "claim.hpp"

#include "implementations/handlers.hpp"

namespace tenon::onednn {
namespace {

std::string unknown_value(const Graph& graph, int value) {
  if (value == kNone || graph.values[value].is_known) return {};
  const Value& v = graph.values[value];
  if (v.type == ElementType::kCount) {
    return "value " + v.name + " has type " + dtype_name(v.dtype);
  }
  return "the shape of value " + v.name + " depends on data";
}

// Such as the shape of a single number, to which a Reshape leads.
bool is_empty_list(const Value& value) {
  return value.constant && value.type == ElementType::kI64 && value.dims == Dims{0};
}

// What the row does not take of the node's values.
std::string unusual_value(const Graph& graph, const Node& node, uint8_t takes) {
  bool makes_numbers = false;
  for (int output : node.outputs)
    makes_numbers |= output != kNone && graph.values[output].count() > 0;
  for (const std::vector<int>* list : {&node.inputs, &node.outputs}) {
    for (int value : *list) {
      if (value == kNone) continue;
      const Value& v = graph.values[value];
      if (kernels::is_narrow_type(v.type)) {
        if ((takes & kNarrow) != 0) continue;
        return "value " + v.name + " has type " + element_name(v.type);
      }
      bool is_half = v.type == ElementType::kBf16 || v.type == ElementType::kF16;
      if ((takes & kAnyType) == 0 && is_half) {
        return "bf16 or f16 in the graph (ask for precision instead)";
      }
      if ((takes & kAnyType) == 0 && !kernels::is_float_kernel_type(v.type)) {
        return "value " + v.name + " has type " + element_name(v.type);
      }
      const bool is_empty = makes_numbers && v.count() == 0 && !is_empty_list(v);
      if (is_empty && (takes & kEmpty) == 0) return "empty tensor";
    }
  }
  return {};
}

// Nothing is run for results without elements, so nothing would look at the numbers that say so.
bool is_empty_by_data(const Graph& graph, const Node& node) {
  const std::vector<Value>& values = graph.values;
  bool reads_numbers = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    const Value& input = values[node.inputs[i]];
    if (input.count() == 0) return false;
    reads_numbers |= i > 0 && input.data == nullptr;
  }
  for (int output : node.outputs)
    if (output != kNone && values[output].count() > 0) return false;
  return reads_numbers;
}

std::string why_not_body(const Graph* body) {
  if (body == nullptr) return {};
  for (size_t i = 0; i < body->nodes.size(); ++i) {
    std::string why = why_not(*body, static_cast<int>(i));
    if (!why.empty()) return cat("node ", body->nodes[i].name, " of its body: ", why);
  }
  return {};
}

}  // namespace

std::string why_not(const Graph& graph, int index) {
  const Node& node = graph.nodes[index];
  if (!node.unbound.empty() && find_handler(node.op).op.empty()) {
    return node.unbound;
  }
  for (int input : node.inputs) {
    if (std::string why = unknown_value(graph, input); !why.empty()) return why;
  }
  for (int output : node.outputs) {
    if (std::string why = unknown_value(graph, output); !why.empty()) return why;
  }
  if (node.outputs.empty() || node.outputs[0] == kNone) return "no first output";
  const Handler& handler = find_handler(node.op);
  if ((handler.takes & kOptionalFirst) == 0 && (node.inputs.empty() || node.inputs[0] == kNone))
    return "no first input";
  if (is_empty_by_data(graph, node)) return "the result has no elements, as data say";
  if (std::string why = unusual_value(graph, node, handler.takes); !why.empty()) return why;
  if (std::string why = handler.refuse(graph, node); !why.empty()) return why;
  return why_not_body(graph.body_of(node).get());
}

std::vector<int> claim_group(const Graph& graph, int index) {
  std::vector<int> group = {index};
  for (int input : graph.nodes[index].inputs) {
    int producer = input == kNone ? kNone : graph.values[input].producer;
    if (producer == kNone || graph.nodes[producer].op != "DequantizeLinear") continue;
    bool is_constant = graph.values[graph.nodes[producer].inputs[0]].data != nullptr;
    bool is_private = graph.only_user(input) != kNone;
    if (is_constant && is_private && why_not(graph, producer).empty()) group.push_back(producer);
  }
  return group;
}

}  // namespace tenon::onednn
