// SPDX-License-Identifier: Apache-2.0
// tenon:ConvWeightGrad(x, dy, shape of w) by oneDNN's backward primitive. (ConvInputGrad is a
// ConvTranspose: expand.cpp.)

#include "conv_geometry.hpp"
#include "handlers.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

// [o, i / g, spatial] with the groups in front, as oneDNN has weights.
Dims grouped(const Dims& dims, int64_t groups) {
  if (groups == 1) return dims;
  Dims out = {groups, dims[0] / groups};
  out.insert(out.end(), dims.begin() + 1, dims.end());
  return out;
}

}  // namespace

std::string refuse_conv_weight_grad(const Graph& graph, const Node& node) {
  for (size_t i : {0, 1}) {
    const Value& value = graph.values[node.inputs[i]];
    if (value.type != ElementType::kF32) return "only f32";
    if (value.dims.size() < 3 || value.dims.size() > 5) return "only 1, 2 or 3 spatial axes";
  }
  return {};
}

void lower_conv_weight_grad(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& x_dims = graph.values[node.inputs[0]].dims;
  const Dims& y_dims = graph.values[node.inputs[1]].dims;
  const Value& result = graph.values[node.outputs[0]];
  Window window =
      find_window(node, x_dims, y_dims, Dims(result.dims.begin() + 2, result.dims.end()));
  ElementType type = lowering.real_type();
  View x = lowering.read(node.inputs[0], type, channels_last_strides(x_dims));
  View dy = lowering.read(node.inputs[1], type, channels_last_strides(y_dims));
  Dims dims = grouped(result.dims, node.integer("group", 1));
  Desc x_desc = channels_last_descriptor(x);
  Desc dy_desc = channels_last_descriptor(dy);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  dnnl::convolution_forward::primitive_desc forward(
      lowering.engine(), dnnl::prop_kind::forward_training, kDirect, x_desc,
      Desc(dims, dnnl_type(type), Tag::any), dy_desc, window.strides, window.dilates,
      window.pad_begin, window.pad_end);
  dnnl::convolution_backward_weights::primitive_desc pd(
      lowering.engine(), kDirect, x_desc, Desc(dims, dnnl::memory::data_type::f32, Tag::any),
      dy_desc, window.strides, window.dilates, window.pad_begin, window.pad_end, forward, attr);
  Desc made = pd.diff_weights_desc();
  View packed{.dims = {static_cast<int64_t>(made.get_size() / 4)}, .strides = {1}};
  packed.buffer = lowering.scratch(packed.bytes());
  double flops = 2.0 * static_cast<double>(element_count(y_dims)) *
                 static_cast<double>(result.count() / result.dims[0]);
  lowering.add_primitive(node.name, pd.impl_info_str(), dnnl::convolution_backward_weights(pd),
                         pd.scratchpad_desc(),
                         {{DNNL_ARG_SRC, place_of(x), x_desc},
                          {DNNL_ARG_DIFF_DST, place_of(dy), dy_desc},
                          {DNNL_ARG_DIFF_WEIGHTS, place_of(packed), made}},
                         flops);
  View dst = lowering.make(node.outputs[0], ElementType::kF32, row_major_strides(result.dims));
  Desc plain(dims, dnnl::memory::data_type::f32, row_major_strides(dims));
  dnnl::reorder::primitive_desc unpack(lowering.engine(), made, lowering.engine(), plain, attr);
  lowering.add_primitive(
      node.name + " unpack", unpack.impl_info_str(), dnnl::reorder(unpack),
      unpack.scratchpad_desc(),
      {{DNNL_ARG_FROM, place_of(packed), made}, {DNNL_ARG_TO, place_of(dst), plain}}, 0);
}

}  // namespace tenon::onednn
