// SPDX-License-Identifier: Apache-2.0
// Conv: what its implementations look at, and their list.

#include <algorithm>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "handlers.hpp"
#include "lists.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

constexpr Implementation<ConvSite> kConv[] = {
    {"binary", offer_binary_conv},
    {"winograd", offer_winograd, kRival},
    {"sparse", offer_sparse_conv, kRival},
    {"int8 depthwise", offer_depthwise, kRival},
    {"float depthwise", offer_float_depthwise, kRival},
    {"filter", offer_filter, kRival},
    {"computed filter", offer_computed_filter},
    {"amx planes", offer_tile_planes, kRival},
    {"amx windows", offer_tile_taps, kRival},
    {"amx", offer_tile_conv, kRival},
    {"bf16x6", offer_bf16x6_conv, kRival},
    {"int8 gemm", offer_int8_conv},
    {"onednn", offer_onednn_conv, kRival},
};

}  // namespace

Names conv_names() {
  return names_of(kConv);
}

Int8 int8_of(const Lowering& lowering, const Node& node, int channel_axis) {
  const View& src = lowering.view(node.inputs[0]);
  const View& weights = lowering.view(node.inputs[1]);
  const bool runs = holds_quantized(src) && src.channels == nullptr &&
                    are_int8_weights(lowering, weights, channel_axis);
  return {runs, runs && sums_are_exact(lowering, src, weights)};
}

std::string why_not_one_product(const ConvSite& site) {
  const Node& node = site.node();
  if (node.integer("group", 1) != 1) return "more than one group";
  if (site.dims(node.inputs[0]).size() > 4) return "more than two spatial axes";
  return has_known_bias(site.lowering, node.input(2)) ? "" : "the bias is computed";
}

std::string refuse_repeated_channels(const ConvSite& site) {
  if (!has_known_bias(site.lowering, site.bias(site.epilogue))) return "the bias is computed";
  if (site.epilogue.norm != kNone) return "a BatchNormalization is folded into the weights";
  const bool is_alone = std::all_of(site.epilogue.ops.begin(), site.epilogue.ops.end(),
                                    [](const EpilogueNode& op) { return op.eltwise.has_value(); });
  return is_alone ? "" : "what follows has operands of its own";
}

std::vector<float> repeated_channels(const float* numbers, int64_t n_filters, int64_t times) {
  std::vector<float> all;
  for (int64_t i = 0; i < times; ++i)
    all.insert(all.end(), numbers, numbers + n_filters);
  return all;
}

std::string refuse_conv(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (std::string why = refuse_image(src); !why.empty()) return why;
  const Dims& weights = graph.values[node.inputs[1]].dims;
  const Window window = find_window(node, src.dims, graph.values[node.outputs[0]].dims,
                                    Dims(weights.begin() + 2, weights.end()));
  // A wide dilation with auto_pad asks for as much padding; offsets within an image have 32 bits.
  auto elements = static_cast<double>(src.dims[1]);
  for (size_t i = 0; i < window.kernel.size(); ++i)
    elements *= static_cast<double>(src.dims[i + 2] + window.pad_begin[i] + window.pad_end[i]);
  return elements > INT32_MAX ? "a padded image of more than 2^31 elements" : "";
}

void lower_conv(Lowering& lowering, int node) {
  const Node& conv = lowering.graph().nodes[node];
  const bool has_bias = conv.input(2) != kNone;
  read_as_floats(lowering, conv.inputs[0], conv.inputs[1]);
  const ConvSite site{
      lowering, node,
      has_bias ? find_epilogue_with_bias(lowering, node, 1) : find_epilogue(lowering, node, 1),
      empty_epilogue(lowering, node), int8_of(lowering, conv, 0)};
  choose<ConvSite>(lowering, site, kConv);
}

}  // namespace tenon::onednn
