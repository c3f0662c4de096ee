// SPDX-License-Identifier: Apache-2.0
// ConvTranspose in f32 and bf16, channels-last.

#include "../tail.hpp"
#include "conv_geometry.hpp"
#include "handlers.hpp"
#include "packed_weights.hpp"
#include "winograd.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;

void build(Lowering& lowering, int index, const Tail& tail) {
  const Node& node = lowering.graph().nodes[index];
  const Dims src_dims = lowering.graph().values[node.inputs[0]].dims;
  const Dims weights_dims = lowering.graph().values[node.inputs[1]].dims;  // i, o / g, spatial
  const Dims dst_dims = lowering.graph().values[node.outputs[0]].dims;
  int64_t groups = node.integer("group", 1);
  Window window =
      find_window(node, dst_dims, src_dims, Dims(weights_dims.begin() + 2, weights_dims.end()));
  ElementType type = lowering.real_type();
  View src = lowering.read(node.inputs[0], type, channels_last_strides(src_dims));
  View weights = lowering.read_real(node.inputs[1]);
  if (!is_dense(weights)) weights = lowering.read_row_major(node.inputs[1], weights.type);
  weights = in_groups(weights, groups);
  size_t out = weights.dims.size() - weights_dims.size();
  std::swap(weights.dims[out], weights.dims[out + 1]);
  std::swap(weights.strides[out], weights.strides[out + 1]);
  int bias = node.input(2) != kNone ? node.input(2) : tail.bias;
  Fused fused = fuse(lowering, tail,
                     {.result_strides = channels_last_strides(dst_dims),
                      .dims = dst_dims,
                      .channel_axis = 1,
                      .src_buffers = {src.buffer}});
  Desc src_desc = channels_last_descriptor(src);
  Desc dst_desc = channels_last_descriptor(fused.dst);
  Desc any(weights.dims, dnnl_type(type), dnnl::memory::format_tag::any);
  Desc bias_desc;
  if (bias != kNone) {
    bias_desc = Desc({dst_dims[1]}, dnnl::memory::data_type::f32, dnnl::memory::dims{1});
  }
  dnnl::deconvolution_forward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct,
      src_desc, any, bias_desc, dst_desc, window.strides, window.dilates, window.pad_begin,
      window.pad_end, fused.attr);
  std::vector<Argument> arguments = std::move(fused.arguments);
  arguments.push_back({DNNL_ARG_SRC, place_of(src), src_desc});
  Place place = packed_weights(lowering, node.name, weights, pd.weights_desc(), groups);
  arguments.push_back({DNNL_ARG_WEIGHTS, place, pd.weights_desc()});
  if (bias != kNone) {
    arguments.push_back(
        {DNNL_ARG_BIAS, place_of(lowering.read_row_major(bias, ElementType::kF32)), bias_desc});
  }
  if (fused.dst.buffer == kNone) fused.dst.buffer = lowering.scratch(fused.dst.bytes());
  arguments.push_back({DNNL_ARG_DST, place_of(fused.dst), dst_desc});
  double flops = 2.0 * static_cast<double>(element_count(src_dims)) *
                 static_cast<double>(element_count(weights_dims) / weights_dims[0]);
  lowering.add_primitive(node.name, pd.impl_info_str(), dnnl::deconvolution_forward(pd),
                         pd.scratchpad_desc(), std::move(arguments), flops);
  lowering.set_view(tail.result, fused.dst);
  mark_absorbed(lowering, tail);
}

}  // namespace

std::string refuse_conv_transpose(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32 || src.count() == 0) return "only f32 that is not empty";
  if (src.dims.size() < 3 || src.dims.size() > 5) return "only 1, 2 or 3 spatial axes";
  if (graph.values[node.inputs[1]].type != ElementType::kF32) return "only f32 weights";
  return {};
}

void lower_conv_transpose(Lowering& lowering, int index) {
  if (lower_winograd_conv_transpose(lowering, index)) return;
  Tail tail = find_tail(lowering, index, 1);
  if (lowering.graph().nodes[index].input(2) != kNone && tail.bias != kNone) {
    tail = empty_tail(lowering, index);
  }
  try {
    build(lowering, index, tail);
    return;
  } catch (const dnnl::error&) {
    if (tail.nodes.empty()) throw;
  } catch (const CompileError&) {
    if (tail.nodes.empty()) throw;
  }
  build(lowering, index, empty_tail(lowering, index));
}

}  // namespace tenon::onednn
