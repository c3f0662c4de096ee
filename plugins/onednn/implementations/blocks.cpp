// SPDX-License-Identifier: Apache-2.0
// DepthToSpace and SpaceToDepth: one strided copy; BitCast: another name for the same bytes.

#include "handlers.hpp"
#include "lowering/strided_copy.hpp"

namespace tenon::onednn {

std::string refuse_blocks(const Graph& graph, const Node& node) {
  const Dims& dims = graph.values[node.inputs[0]].dims;
  int64_t b = node.integer("blocksize", 0);
  if (dims.size() != 4 || b < 1) return "only four axes and blocks of at least one";
  bool fits =
      node.op == "DepthToSpace" ? dims[1] % (b * b) == 0 : dims[2] % b == 0 && dims[3] % b == 0;
  return fits ? "" : "blocks that do not divide the axes";
}

void lower_blocks(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& value = lowering.graph().values[node.outputs[0]];
  View src = lowering.view(node.inputs[0]);
  if (src.channels != nullptr) src = lowering.dequantized_constant(src);
  const int64_t b = node.integer("blocksize", 1);
  const Dims& s = src.strides;
  View to{.type = src.type, .dims = value.dims, .strides = row_major_strides(value.dims)};
  to.quant = src.quant;
  to.buffer = lowering.scratch(to.bytes());
  const Dims& d = to.strides;
  View from = src;
  View into = to;
  from.quant = into.quant = {};
  const bool blocks_last = node.text("mode", "DCR") == "CRD";  // channel before block
  // Axes: batch, block row, block column, channel, row, column.
  if (node.op == "SpaceToDepth") {
    int64_t channels = src.dims[1];
    from.dims = into.dims = {src.dims[0], b, b, channels, src.dims[2] / b, src.dims[3] / b};
    from.strides = {s[0], s[2], s[3], s[1], s[2] * b, s[3] * b};
    into.strides = blocks_last ? Dims{d[0], b * d[1], d[1], b * b * d[1], d[2], d[3]}
                               : Dims{d[0], b * channels * d[1], channels * d[1], d[1], d[2], d[3]};
  } else {
    int64_t channels = value.dims[1];
    from.dims = into.dims = {src.dims[0], b, b, channels, src.dims[2], src.dims[3]};
    from.strides = blocks_last ? Dims{s[0], b * s[1], s[1], b * b * s[1], s[2], s[3]}
                               : Dims{s[0], b * channels * s[1], channels * s[1], s[1], s[2], s[3]};
    into.strides = {d[0], d[2], d[3], d[1], d[2] * b, d[3] * b};
  }
  lowering.add_step(strided_copy(node.name, from, into));
  lowering.set_view(node.outputs[0], to);
}

std::string refuse_bit_cast(const Graph& graph, const Node& node) {
  const Value& from = graph.values[node.inputs[0]];
  const Value& to = graph.values[node.outputs[0]];
  return kernels::element_bytes(from.type) == kernels::element_bytes(to.type)
             ? ""
             : "types of different widths";
}

void lower_bit_cast(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Graph& graph = lowering.graph();
  View view = lowering.view(node.inputs[0]);
  ElementType from = graph.values[node.inputs[0]].type;
  if (view.type != from || view.is_quantized()) {
    view = lowering.read_row_major(node.inputs[0], from);
  }
  view.type = graph.values[node.outputs[0]].type;
  lowering.set_view(node.outputs[0], view);
}

}  // namespace tenon::onednn
