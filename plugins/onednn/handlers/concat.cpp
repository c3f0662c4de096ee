// SPDX-License-Identifier: Apache-2.0
// Concat: each input is copied to its place in the result; between quantised values the copies move
// integers, with new scales where they differ.

#include "../tail.hpp"
#include "handlers.hpp"

namespace tenon::onednn {

std::string refuse_concat(const Graph& graph, const Node& node) {
  return graph.values[node.outputs[0]].dims.size() > 8 ? "more than eight axes" : "";
}

void lower_concat(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  int result = node.outputs[0];
  const Value& value = graph.values[result];
  int64_t axis = node.integer("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(value.dims.size());
  View whole{.type = value.type, .dims = value.dims};
  const View& first = lowering.view(node.inputs[0]);
  bool follows = is_dense(first) && !lowering.is_constant_view(first);
  whole.strides =
      follows ? dense_strides_like(value.dims, first.strides) : row_major_strides(value.dims);
  if (value.type == ElementType::kF32) {
    whole.type = value.n_outputs > 0 ? ElementType::kF32 : lowering.real_type();
  }
  if (int quantize = only_quantize(lowering, result); quantize != kNone) {
    lowering.mark_done(quantize);
    whole.quant = *tensor_quant(lowering, graph.nodes[quantize]);
    result = graph.nodes[quantize].outputs[0];
    whole.type = graph.values[result].type;
  }
  whole.buffer = lowering.scratch(whole.bytes());
  View part = whole;
  for (int input : node.inputs) {
    View from = lowering.view(input);
    if (from.channels != nullptr) from = lowering.dequantized_constant(from);
    part.dims = from.dims;
    View to = part;
    bool same_meaning = from.type == to.type && from.quant.scale == to.quant.scale &&
                        from.quant.zero_point == to.quant.zero_point;
    if (same_meaning) from.quant = to.quant = {};
    if (from.count() > 0) lowering.add_copy(node.name, from, to);
    part.offset += from.dims[axis] * whole.strides[axis];
  }
  whole.quant = {};
  lowering.set_view(result, whole);
}

}  // namespace tenon::onednn
