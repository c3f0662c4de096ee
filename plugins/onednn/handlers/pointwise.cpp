// SPDX-License-Identifier: Apache-2.0
// Pointwise operators (all that have a scalar expression), Cast, QuantizeLinear, DequantizeLinear.

#include "../pointwise_group.hpp"
#include "../softmax_front.hpp"
#include "../tail.hpp"
#include "exact.hpp"
#include "handlers.hpp"

namespace tenon::onednn {

std::string refuse_pointwise(const Graph& graph, const Node& node) {
  if (graph.values[node.outputs[0]].dims.size() > 8) return "more than eight axes";
  return is_pointwise(graph, node) ? "" : refuse_exact(graph, node);
}

void lower_pointwise(Lowering& lowering, int node) {
  if (!is_pointwise(lowering.graph(), lowering.graph().nodes[node])) {
    return lower_exact(lowering, node);
  }
  for (int input : lowering.graph().nodes[node].inputs) {
    if (input == kNone || !lowering.is_available(input) || lowering.is_constant(input)) continue;
    if (lowering.graph().values[input].users != std::vector<int>{node}) continue;
    std::optional<SoftmaxFront> front = find_softmax_front(lowering, input);
    if (front) return lower_softmax_front(lowering, input, *front);
  }
  PointwiseGroup(lowering, node).lower();
}

std::string refuse_cast(const Graph& graph, const Node& node) {
  return is_pointwise(graph, node) ? "" : refuse_exact(graph, node);
}

void lower_cast(Lowering& lowering, int node) {
  if (!is_pointwise(lowering.graph(), lowering.graph().nodes[node])) {
    return lower_exact(lowering, node);
  }
  PointwiseGroup(lowering, node).lower();
}

namespace {

bool is_constant_scalar(const Graph& graph, int value) {
  return value != kNone && graph.values[value].data != nullptr && graph.values[value].count() == 1;
}

}  // namespace

std::string refuse_quantize(const Graph& graph, const Node& node) {
  ElementType type = graph.values[node.outputs[0]].type;
  if (graph.values[node.inputs[0]].type != ElementType::kF32) return "only from f32";
  if (type != ElementType::kU8 && type != ElementType::kS8) return "only to 8-bit integers";
  if (!is_constant_scalar(graph, node.input(1))) return "only one constant scale";
  if (graph.values[node.inputs[1]].type != ElementType::kF32) return "only an f32 scale";
  if (node.input(2) != kNone && !is_constant_scalar(graph, node.input(2))) {
    return "only one constant zero point";
  }
  return {};
}

void lower_quantize(Lowering& lowering, int node) {
  PointwiseGroup(lowering, node).lower();
}

std::string refuse_dequantize(const Graph& graph, const Node& node) {
  const Value& stored = graph.values[node.inputs[0]];
  if (graph.values[node.outputs[0]].type != ElementType::kF32) return "only to f32";
  if (graph.values[node.inputs[1]].data == nullptr) return "only constant scales";
  if (graph.values[node.inputs[1]].type != ElementType::kF32) return "only f32 scales";
  if (node.integer("block_size", 0) != 0) return "blocks";
  if (node.input(2) != kNone && graph.values[node.inputs[2]].data == nullptr) {
    return "only constant zero points";
  }
  bool is_byte = stored.type == ElementType::kU8 || stored.type == ElementType::kS8;
  if (graph.values[node.inputs[1]].count() == 1) {
    bool is_wide_constant = stored.type == ElementType::kI32 && stored.data != nullptr;
    return is_byte || is_wide_constant ? "" : "only from 8-bit integers";
  }
  if (stored.data == nullptr) return "a scale per channel of data that is no constant";
  if (!is_byte && stored.type != ElementType::kI32) return "only from 8-bit integers or i32";
  if (node.input(2) == kNone) return {};
  const Value& zero = graph.values[node.inputs[2]];
  const char* bytes = static_cast<const char*>(zero.data);
  for (int64_t i = 0; i < zero.bytes(); ++i) {
    if (bytes[i] != 0) return "zero points per channel that are not 0";
  }
  return {};
}

void lower_dequantize(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  View view = lowering.view(node.inputs[0]);
  if (std::optional<kernels::Quant> quant = tensor_quant(lowering, node)) {
    view.quant = *quant;
  } else {
    auto channels = std::make_shared<ChannelQuant>();
    int64_t axis = node.integer("axis", 1);
    channels->axis =
        static_cast<int>(axis < 0 ? axis + static_cast<int64_t>(view.dims.size()) : axis);
    channels->scales = lowering.constant_floats(node.inputs[1]);
    view.channels = channels;
  }
  lowering.set_view(node.outputs[0], view);
}

}  // namespace tenon::onednn
