// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and DequantizeLinear of element types that the fused forms do not have:
// floating-point numbers of 8 and 4 bits, integers of 2, 4 and 16 bits, numbers and scales of
// other types than f32. The importer names them apart (".any"), so that no rewrite takes them for
// 8-bit integers.
#include "dense.hpp"
#include "kernels/narrow.h"
#include "quantize_places.hpp"

namespace tenon::onednn {
namespace {

bool is_quantize(const Node& node) {
  return node.op.starts_with("QuantizeLinear");
}

}  // namespace

std::string refuse_quantize_any(const Graph& graph, const Node& node) {
  const Value& scale = graph.values[node.inputs[1]];
  const int stored = is_quantize(node) ? node.outputs[0] : node.inputs[0];
  const int real = is_quantize(node) ? node.inputs[0] : node.outputs[0];
  for (int value : {real, node.inputs[1]})
    if (!kernels::is_real(graph.values[value].type)) return "numbers that are not floating point";
  if (node.input(2) != kNone) {
    const Value& zero = graph.values[node.inputs[2]];
    if (zero.type != graph.values[stored].type) return "zero points of another type";
    if (zero.count() != scale.count()) return "zero points of another shape";
  }
  return find_places(graph, node) ? "" : "scales of a shape that does not fit";
}

void lower_quantize_any(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& value = graph.values[node.outputs[0]];
  const kernels::QuantizeArgs places = *find_places(graph, node);
  kernels::AnyQuantizeArgs args{.from = graph.values[node.inputs[0]].type,
                                .to = value.type,
                                .scale = graph.values[node.inputs[1]].type,
                                .axis = places.axis,
                                .inner = places.inner,
                                .block = places.block,
                                .n = value.count(),
                                .saturates = node.integer("saturate", 1) != 0};
  Step step{.name = node.name, .kernel = "tenon:quantize_any", .always_succeeds = true};
  for (size_t i = 0; i < 3; ++i) {
    if (node.input(i) == kNone) {
      step.places.push_back({});
      continue;
    }
    const View view = read_dense(lowering, node.inputs[i]);
    step.places.push_back(place_of(view));
    step.bytes += static_cast<double>(view.bytes());
  }
  const View made = lowering.make(node.outputs[0], value.type, row_major_strides(value.dims));
  step.places.push_back(place_of(made));
  step.bytes += static_cast<double>(made.bytes());
  const bool has_zeros = node.input(2) != kNone;
  step.kernel_function = [args, has_zeros, forward = is_quantize(node)](
                             const kernels::Context& context,
                             void* const* pointers) -> const char* {
    const void* zeros = has_zeros ? pointers[2] : nullptr;
    (forward ? kernels::quantize_any : kernels::dequantize_any)(context, args, pointers[0],
                                                                pointers[1], zeros, pointers[3]);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace tenon::onednn
