// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear. With one constant scale they are part of what stands around
// them: the end of a pointwise pass, or a view whose integers stand for floating-point numbers.
// Scales that are computed (a weight in quantization-aware training), lie along an axis or in
// blocks are a step of their own.

#include "kernels/quantize.h"

#include <algorithm>

#include "tenon/sdk/backend/weights.hpp"

#include "dense.hpp"
#include "int4_matrix.hpp"
#include "lowering/epilogue.hpp"
#include "lowering/pointwise_group.hpp"
#include "quantize_places.hpp"

namespace tenon::onednn {
namespace {

bool is_byte(ElementType type) {
  return type == ElementType::kU8 || type == ElementType::kS8;
}

bool is_constant_or_absent(const Graph& graph, int value) {
  return value == kNone || graph.values[value].data != nullptr;
}

// One scale and one zero point, known when the graph is compiled.
bool has_tensor_quant(const Graph& graph, const Node& node) {
  bool is_one = graph.values[node.inputs[1]].count() == 1 &&
                (node.input(2) == kNone || graph.values[node.inputs[2]].count() == 1);
  return is_one && is_constant_or_absent(graph, node.inputs[1]) &&
         is_constant_or_absent(graph, node.input(2));
}

std::string refuse_places(const Graph& graph, const Node& node, ElementType zero_type) {
  if (node.input(1) == kNone || graph.values[node.inputs[1]].type != ElementType::kF32) {
    return "only f32 scales";
  }
  if (node.input(2) != kNone) {
    const Value& zero = graph.values[node.inputs[2]];
    if (zero.type != zero_type) return "zero points of another type";
    if (zero.count() != graph.values[node.inputs[1]].count()) return "zero points of another shape";
  }
  return find_places(graph, node) ? "" : "scales of a shape that does not fit";
}

// The node as one step: the kernel gets tensor, scales and zero points when it runs.
void lower_places(Lowering& lowering, int index, bool forward) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  kernels::QuantizeArgs args = *find_places(graph, node);
  args.src.type = graph.values[node.inputs[0]].type;
  args.dst.type = graph.values[node.outputs[0]].type;
  size_t n_inputs = node.inputs.size();
  auto run = [args, n_inputs, forward](const kernels::Context& context, void* const* pointers) {
    kernels::QuantizeArgs with = args;
    with.src.data = pointers[0];
    with.scales = static_cast<const float*>(pointers[1]);
    with.zero_points = n_inputs > 2 ? pointers[2] : nullptr;
    with.dst.data = pointers[n_inputs];
    forward ? kernels::quantize(context, with) : kernels::dequantize(context, with);
    return static_cast<const char*>(nullptr);
  };
  lower_dense(lowering, index, forward ? "tenon:quantize" : "tenon:dequantize", run);
}

// Whether the stored integers and constant scales are all that there is to know: scales of the
// whole tensor, or along an axis of constant data, as oneDNN takes for weights.
bool is_view(const Graph& graph, const Node& node) {
  if (node.integer("block_size", 0) != 0) return false;
  const Value& stored = graph.values[node.inputs[0]];
  if (stored.data == nullptr && !is_byte(stored.type)) return false;
  if (has_tensor_quant(graph, node)) return true;
  const Value& scale = graph.values[node.inputs[1]];
  if (stored.data == nullptr || scale.data == nullptr || scale.dims.size() != 1) return false;
  if (node.input(2) == kNone) return true;
  const Value& zero = graph.values[node.inputs[2]];
  const char* bytes = static_cast<const char*>(zero.data);
  return bytes != nullptr &&
         std::all_of(bytes, bytes + zero.bytes(), [](char b) { return b == 0; });
}

// Numbers that are kept as the very quantized values that the node makes of them, as behind a
// Reshape between two int8 nodes.
std::optional<View> as_stored(const Lowering& lowering, const Node& node) {
  View view = lowering.view(node.inputs[0]);
  const std::optional<kernels::Quant> quant = tensor_quant(lowering, node);
  const bool are_alike = quant && view.channels == nullptr &&
                         view.type == lowering.graph().values[node.outputs[0]].type &&
                         is_same(view.quant, *quant);
  if (!are_alike) return std::nullopt;
  view.quant = {};
  return view;
}

// Packed quantized values are constants that are known when the plan is made.
std::string refuse_packed(const Graph& graph, const Node& node) {
  for (size_t i : {0, 1, 2})
    if (!is_constant_or_absent(graph, node.input(i))) return "4-bit values that are no constants";
  const Value& quantized = graph.values[node.inputs[0]];
  const Value& scale = graph.values[node.inputs[1]];
  const bool is_real = scale.type == ElementType::kF32 || scale.type == ElementType::kF16 ||
                       scale.type == ElementType::kBf16;
  if (!is_real) return "scales that are not floating point";
  if (node.input(2) != kNone) {
    const Value& zero = graph.values[node.inputs[2]];
    if (zero.type != quantized.type || zero.count() != scale.count())
      return "zero points of another type or shape";
  }
  return find_places(graph, node) ? "" : "scales of a shape that does not fit";
}

// By which numbers and along which axis a DequantizeLinear gives its input a meaning: all that the
// result depends on beside the bytes of the input.
std::string meaning_of(const Graph& graph, const Node& node) {
  std::string out;
  for (size_t i : {0, 1, 2}) {
    if (node.input(i) == kNone) continue;
    const Value& v = graph.value(node.input(i));
    out += cat(" ", element_name(v.type));
    for (int64_t extent : v.dims)
      out += cat(" ", extent);
    if (i > 0) out += cat(" ", backend::content_hash(v.data, static_cast<size_t>(v.bytes())));
  }
  return cat(out, " ", node.integer("axis", 1), " ", node.integer("block_size", 0));
}

// Products read them packed and need nothing here; whoever else does gets floats.
void lower_packed(Lowering& lowering, const Node& node) {
  const Graph& graph = lowering.graph();
  const int value = node.outputs[0];
  const std::vector<int>& users = graph.values[value].users;
  const bool stays_packed =
      graph.values[value].n_outputs == 0 && std::all_of(users.begin(), users.end(), [&](int user) {
        return why_not_packed(graph, user, value).empty();
      });
  if (stays_packed) return;
  const Value& quantized = graph.values[node.inputs[0]];
  lowering.set_view(
      value, lowering.make_constant(
                 ElementType::kF32, quantized.dims,
                 lowering.weights().made(
                     quantized.data, (quantized.count() + 1) / 2,
                     "4-bit values as f32" + meaning_of(graph, node), quantized.count() * 4,
                     [&](void* to) { expand_packed(graph, node, static_cast<float*>(to)); })));
}

}  // namespace

std::optional<kernels::QuantizeArgs> find_places(const Graph& graph, const Node& node) {
  const Dims& dims = graph.values[node.inputs[0]].dims;
  const Dims& scale = graph.values[node.inputs[1]].dims;
  kernels::QuantizeArgs args;
  if (element_count(scale) == 1) {
    args.inner = element_count(dims);
    return args;
  }
  size_t axis = static_cast<size_t>(positive_axis(node.integer("axis", 1), dims.size()));
  if (axis >= dims.size()) return std::nullopt;
  AxisSplit split = split_at(dims, static_cast<int64_t>(axis));
  args.outer = split.outer;
  args.axis = split.k;
  args.inner = split.inner;
  int64_t block = node.integer("block_size", 0);
  if (scale.size() == 1 && block == 0) {
    return scale[0] == split.k ? std::optional(args) : std::nullopt;
  }
  if (scale.size() != dims.size() || scale[axis] == 0) return std::nullopt;
  if (block == 0) block = (split.k + scale[axis] - 1) / scale[axis];
  block = std::clamp<int64_t>(block, 1, std::max<int64_t>(split.k, 1));  // one is all of the axis
  Dims expected = dims;
  expected[axis] = (split.k + block - 1) / block;
  if (scale != expected) return std::nullopt;
  args.block = block;
  return args;
}

std::string refuse_quantize(const Graph& graph, const Node& node) {
  ElementType type = graph.values[node.outputs[0]].type;
  if (graph.values[node.inputs[0]].type != ElementType::kF32) return "only from f32";
  if (!is_byte(type)) return "only to 8-bit integers";
  return refuse_places(graph, node, type);
}

void lower_quantize(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (!has_tensor_quant(lowering.graph(), node)) return lower_places(lowering, index, true);
  if (std::optional<View> quantized = as_stored(lowering, node))
    return lowering.set_view(node.outputs[0], *quantized);
  PointwiseGroup(lowering, index).lower();
}

std::string refuse_dequantize(const Graph& graph, const Node& node) {
  ElementType type = graph.values[node.inputs[0]].type;
  if (graph.values[node.outputs[0]].type != ElementType::kF32) return "only to f32";
  if (kernels::is_int4_type(type)) return refuse_packed(graph, node);
  if (!is_byte(type) && type != ElementType::kI32) return "only from 8-bit integers or i32";
  return refuse_places(graph, node, type);
}

void lower_dequantize(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (kernels::is_int4_type(lowering.graph().values[node.inputs[0]].type))
    return lower_packed(lowering, node);
  if (!is_view(lowering.graph(), node)) return lower_places(lowering, index, false);
  View view = lowering.view(node.inputs[0]);
  if (std::optional<kernels::Quant> quant = tensor_quant(lowering, node)) {
    view.quant = *quant;
  } else {
    auto channels = std::make_shared<ChannelQuant>();
    int64_t axis = positive_axis(node.integer("axis", 1), view.dims.size());
    channels->axis = static_cast<int>(axis);
    channels->scales = lowering.constant_floats(node.inputs[1]);
    view.channels = channels;
  }
  // 32-bit constants (biases) have no kernel that reads them with a scale.
  if (!is_byte(view.type)) view = lowering.dequantized_constant(view);
  lowering.set_view(node.outputs[0], view);
}

}  // namespace tenon::onednn
