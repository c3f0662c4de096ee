// SPDX-License-Identifier: Apache-2.0
// tenon:MaxPoolGrad(dy, x) and tenon:AveragePoolGrad(dy, shape of x) by oneDNN's backward
// primitives, or our own kernel where windows are dilated. Where the maxima were is what the
// MaxPool of the same window kept; without one it runs forward once more.

#include "conv_geometry.hpp"
#include "dilated_max.hpp"
#include "handlers.hpp"
#include "kept.hpp"

namespace tenon::onednn {
namespace {

using A = dnnl::algorithm;
using Desc = dnnl::memory::desc;

Node pool_of(const Node& node) {
  Node pool;
  pool.op = node.op == "tenon.MaxPoolGrad" ? "MaxPool" : "AveragePool";
  pool.name = node.name;
  pool.inputs = {node.outputs[0]};  // a value of x's shape
  pool.outputs = {node.inputs[0]};
  pool.attributes = node.attributes;
  return pool;
}

// Where the maxima are, when no forward step has left it.
Place find_places(Lowering& lowering,
                  const Node& node,
                  const dnnl::pooling_forward::primitive_desc& forward,
                  const Desc& x_desc,
                  const Desc& y_desc) {
  const Dims& x_dims = lowering.graph().values[node.inputs[1]].dims;
  View x = lowering.read(node.inputs[1], lowering.real_type(), channels_last_strides(x_dims));
  Place found{lowering.scratch(static_cast<int64_t>(forward.workspace_desc().get_size())), 0};
  Place most{lowering.scratch(static_cast<int64_t>(y_desc.get_size())), 0};
  lowering.add_primitive<dnnl::pooling_forward>(
      node.name + " places", forward,
      {{DNNL_ARG_SRC, place_of(x), x_desc},
       {DNNL_ARG_DST, most, y_desc},
       {DNNL_ARG_WORKSPACE, found, forward.workspace_desc()}},
      0);
  return found;
}

void lower_dilated_max_grad(Lowering& lowering, const Node& node, const Window& window) {
  const int x = node.inputs[1];
  const Dims& x_dims = lowering.graph().values[x].dims;
  const Dims& y_dims = lowering.graph().values[node.inputs[0]].dims;
  const Dims strides = channels_last_strides(x_dims), y_strides = channels_last_strides(y_dims);
  const View dy = lowering.read(node.inputs[0], ElementType::kF32, y_strides);
  const Place* kept = lowering.kept(x, dilated_max_key(window));
  const Place taps = kept != nullptr ? *kept : taps_of(lowering, y_dims);
  if (kept == nullptr) {
    const View src = lowering.read(x, ElementType::kF32, strides);
    View most{.type = ElementType::kF32, .dims = y_dims, .strides = y_strides};
    most.buffer = lowering.scratch(most.bytes());
    add_dilated_max(lowering, node.name + " places", window, src, most, &taps);
  }
  const View dx = lowering.make(node.outputs[0], ElementType::kF32, strides);
  add_dilated_max_grad(lowering, node.name, window, dy, dx, taps);
}

}  // namespace

std::string refuse_pool_grad(const Graph& graph, const Node& node) {
  if (graph.values[node.inputs[0]].type != ElementType::kF32) return "only f32";
  return refuse_pool(graph, pool_of(node));
}

void lower_pool_grad(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const bool is_max = node.op == "tenon.MaxPoolGrad";
  const Dims& x_dims = graph.values[node.outputs[0]].dims;
  const Dims& y_dims = graph.values[node.inputs[0]].dims;
  Window w = find_window(node, x_dims, y_dims, node.integers("kernel_shape"));
  if (is_max && is_dilated(w)) return lower_dilated_max_grad(lowering, node, w);
  const A average = node.integer("count_include_pad", 0) != 0 ? A::pooling_avg_include_padding
                                                              : A::pooling_avg_exclude_padding;
  const A algorithm = is_max ? A::pooling_max : average;
  const dnnl::primitive_attr attr = new_attr();
  const ElementType type = lowering.real_type();
  View dy = lowering.read(node.inputs[0], type, channels_last_strides(y_dims));
  View dx = lowering.make(node.outputs[0], type, channels_last_strides(x_dims));
  const Desc x_desc = channels_last_descriptor(dx);
  const Desc y_desc = channels_last_descriptor(dy);
  dnnl::pooling_forward::primitive_desc forward(
      lowering.engine(), dnnl::prop_kind::forward_training, algorithm, x_desc, y_desc, w.strides,
      w.kernel, w.dilates, w.pad_begin, w.pad_end, attr);
  std::vector<Argument> arguments = {{DNNL_ARG_DIFF_DST, place_of(dy), y_desc},
                                     {DNNL_ARG_DIFF_SRC, place_of(dx), x_desc}};
  if (is_max) {
    const Desc places = forward.workspace_desc();
    const Place* kept = lowering.kept(node.inputs[1], max_pool_key(w));
    Place found = kept != nullptr ? *kept : find_places(lowering, node, forward, x_desc, y_desc);
    arguments.push_back({DNNL_ARG_WORKSPACE, found, places});
  }
  dnnl::pooling_backward::primitive_desc pd(lowering.engine(), algorithm, x_desc, y_desc, w.strides,
                                            w.kernel, w.dilates, w.pad_begin, w.pad_end, forward,
                                            attr);
  lowering.add_primitive<dnnl::pooling_backward>(node.name, pd, std::move(arguments),
                                                 static_cast<double>(dx.count()));
}

}  // namespace tenon::onednn
