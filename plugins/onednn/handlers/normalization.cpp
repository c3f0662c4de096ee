// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax, LayerNormalization, and BatchNormalization that nothing could fold. Sums are
// kept in f32 also when the data is bf16.

#include "handlers.hpp"

namespace tenon::onednn {
namespace {

using A = dnnl::algorithm;

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

int64_t axis_of(const Node& node, const Value& value, int64_t fallback) {
  int64_t axis = node.integer("axis", fallback);
  return axis < 0 ? axis + static_cast<int64_t>(value.dims.size()) : axis;
}

}  // namespace

std::string refuse_softmax(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32) return "only f32";
  if (src.dims.empty() || src.dims.size() > 6) return "only 1 to 6 axes";
  return src.count() == 0 ? "empty tensor" : "";
}

void lower_softmax(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& value = lowering.graph().values[node.outputs[0]];
  View src = lowering.read_real(node.inputs[0]);
  if (!is_dense(src)) src = lowering.read_row_major(node.inputs[0], lowering.real_type());
  View dst = src;
  dst.offset = 0;
  if (value.n_outputs > 0) dst.type = ElementType::kF32;
  bool in_place = src.offset == 0 && dst.type == src.type &&
                  lowering.plan().buffers[src.buffer].bytes == dst.bytes() &&
                  lowering.dies_with(src, index);
  if (!in_place) dst.buffer = lowering.scratch(dst.bytes());
  dnnl::memory::desc src_desc = descriptor(src);
  dnnl::memory::desc dst_desc = descriptor(dst);
  A algorithm = node.op == "LogSoftmax" ? A::softmax_log : A::softmax_accurate;
  dnnl::softmax_forward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::forward_inference, algorithm, src_desc, dst_desc,
      static_cast<int>(axis_of(node, value, -1)), user_scratchpad());
  lowering.add_primitive(
      node.name, pd.impl_info_str(), dnnl::softmax_forward(pd), pd.scratchpad_desc(),
      {{DNNL_ARG_SRC, place_of(src), src_desc}, {DNNL_ARG_DST, place_of(dst), dst_desc}},
      5.0 * static_cast<double>(value.count()));
  lowering.set_view(node.outputs[0], dst);
}

std::string refuse_layer_norm(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.count() == 0) return "only f32 that is not empty";
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNone) return "mean and deviation as results";
  }
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis_of(node, src, -1)); i < src.dims.size(); ++i) {
    inner *= src.dims[i];
  }
  for (int input : {node.input(1), node.input(2)}) {
    if (input != kNone && graph.values[input].count() != inner) return "scales that broadcast";
  }
  return {};
}

void lower_layer_norm(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& value = lowering.graph().values[node.outputs[0]];
  View src = lowering.read_row_major(node.inputs[0], lowering.read_real(node.inputs[0]).type);
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis_of(node, value, -1)); i < value.dims.size(); ++i) {
    inner *= value.dims[i];
  }
  Dims dims = {value.count() / inner, inner};
  View dst{.type = value.n_outputs > 0 ? ElementType::kF32 : lowering.real_type(),
           .dims = value.dims,
           .strides = row_major_strides(value.dims)};
  dst.buffer = lowering.scratch(dst.bytes());
  dnnl::memory::desc src_desc = descriptor(src, dims, row_major_strides(dims));
  dnnl::memory::desc dst_desc = descriptor(dst, dims, row_major_strides(dims));
  dnnl::memory::desc row({inner}, dnnl::memory::data_type::f32, dnnl::memory::dims{1});
  using Flags = dnnl::normalization_flags;
  Flags flags = Flags::use_scale;
  std::vector<Argument> arguments = {
      {DNNL_ARG_SRC, place_of(src), src_desc},
      {DNNL_ARG_DST, place_of(dst), dst_desc},
      {DNNL_ARG_SCALE, place_of(lowering.read_row_major(node.inputs[1], ElementType::kF32)), row}};
  if (node.input(2) != kNone) {
    flags = flags | Flags::use_shift;
    arguments.push_back({DNNL_ARG_SHIFT,
                         place_of(lowering.read_row_major(node.inputs[2], ElementType::kF32)),
                         row});
  }
  dnnl::layer_normalization_forward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::forward_inference, src_desc, dst_desc,
      static_cast<float>(node.real("epsilon", 1e-5)), flags, user_scratchpad());
  lowering.add_primitive(node.name, pd.impl_info_str(), dnnl::layer_normalization_forward(pd),
                         pd.scratchpad_desc(), std::move(arguments),
                         8.0 * static_cast<double>(value.count()));
  lowering.set_view(node.outputs[0], dst);
}

std::string refuse_batch_norm(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (node.integer("training_mode", 0) != 0) return "training mode";
  if (src.type != ElementType::kF32 || src.count() == 0) return "only f32 that is not empty";
  return src.dims.size() < 2 || src.dims.size() > 5 ? "only 2 to 5 axes" : "";
}

void lower_batch_norm(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  View src = lowering.read_real(node.inputs[0]);
  Dims strides = channels_last_strides(src.dims);
  if (!is_row_major(src) || src.type != ElementType::kF32) {
    src = lowering.read(node.inputs[0], src.type, strides);
  }
  View dst = src;
  dst.offset = 0;
  dst.buffer = lowering.scratch(dst.bytes());
  dnnl::memory::desc desc = descriptor(src);
  dnnl::memory::desc row({src.dims[1]}, dnnl::memory::data_type::f32, dnnl::memory::dims{1});
  using Flags = dnnl::normalization_flags;
  dnnl::batch_normalization_forward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::forward_inference, desc, desc,
      static_cast<float>(node.real("epsilon", 1e-5)),
      Flags::use_scale | Flags::use_shift | Flags::use_global_stats, user_scratchpad());
  auto row_place = [&](int input) {
    return place_of(lowering.read_row_major(node.inputs[input], ElementType::kF32));
  };
  lowering.add_primitive(node.name, pd.impl_info_str(), dnnl::batch_normalization_forward(pd),
                         pd.scratchpad_desc(),
                         {{DNNL_ARG_SRC, place_of(src), desc},
                          {DNNL_ARG_DST, place_of(dst), desc},
                          {DNNL_ARG_SCALE, row_place(1), row},
                          {DNNL_ARG_SHIFT, row_place(2), row},
                          {DNNL_ARG_MEAN, row_place(3), row},
                          {DNNL_ARG_VARIANCE, row_place(4), row}},
                         2.0 * static_cast<double>(src.count()));
  lowering.set_view(node.outputs[0], dst);
}

}  // namespace tenon::onednn
