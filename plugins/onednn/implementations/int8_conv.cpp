// SPDX-License-Identifier: Apache-2.0
// Conv of quantized values as a product: a row is what the window sees at one place of a
// channels-last image.

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "int8_product.hpp"

namespace tenon::onednn {
namespace {

// A panel has 16 columns: with fewer than half of them a real convolution is as fast.
constexpr int64_t kLeastColumns = 8;

// In the order of a row: tap by tap, all channels of each.
Dims tap_places(const View& weights) {
  Dims places;
  const size_t rank = weights.dims.size();
  const int64_t rows = rank == 4 ? weights.dims[2] : 1;
  const int64_t row_stride = rank == 4 ? weights.strides[2] : 0;
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t x = 0; x < weights.dims.back(); ++x)
      for (int64_t c = 0; c < weights.dims[1]; ++c)
        places.push_back(c * weights.strides[1] + y * row_stride + x * weights.strides.back());
  return places;
}

}  // namespace

GemmStep conv_step(const Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& src = lowering.view(node.inputs[0]).dims;
  const View weights = lowering.view(node.inputs[1]);
  const int64_t groups = node.integer("group", 1);
  const Dims& dst = graph.values[node.outputs[0]].dims;
  const Window window =
      find_window(node, src, dst, Dims(weights.dims.begin() + 2, weights.dims.end()));
  GemmStep step{.node = index, .bias = node.input(2)};
  step.args.m = dst[0] * element_count(Dims(dst.begin() + 2, dst.end()));
  step.args.n = weights.dims[0] / groups;
  step.args.k = weights.count() / weights.dims[0];
  step.weights = {.view = weights, .groups = groups};
  kernels::ConvWindows& w = step.args.a.windows;
  w = {windows_of(src, dst, window), src[1], weights.dims[1]};
  const bool is_plain = groups == 1 && element_count(window.kernel) == 1 && w.stride_x == 1 &&
                        w.stride_y == 1 && w.pad_left == 0 && w.pad_top == 0 &&
                        w.out_width == w.width && w.out_height == w.height;
  step.args.a.has_windows = !is_plain;
  step.args.a.stride = step.args.k;
  step.src_group = weights.dims[1];
  step.dst_strides = channels_last_strides(dst);
  step.dst_row = dst[1];
  return step;
}

void add_weights(Lowering& lowering, const Epilogue& epilogue, GemmStep* step) {
  GemmWeights& weights = step->weights;
  weights.n_stride = weights.view.strides[0];
  weights.group_stride = step->args.n * weights.n_stride;
  weights.k_places = tap_places(weights.view);
  if (epilogue.norm != kNone) step->norm = channel_norm(lowering, epilogue.norm);
}

View quantized_channels_last(Lowering& lowering, int value) {
  const View& found = lowering.view(value);
  View quantized = lowering.read_stored(value, channels_last_strides(found.dims), found.type);
  lowering.set_view(value, quantized);
  return quantized;
}

Offer offer_int8_conv(const ConvSite& site) {
  Lowering& lowering = site.lowering;
  const Node& node = site.node();
  if (!site.int8.runs) return refused("the operands are not both quantized to 8 bits");
  if (site.int8.is_exact) return refused("oneDNN's int8 sums are exact");
  if (!is_dense(lowering.view(node.inputs[1]))) return refused("weights with gaps between them");
  if (site.dims(node.inputs[0]).size() > 4) return refused("more than two spatial axes");
  if (!has_known_bias(lowering, node.input(2))) return refused("the bias is computed");
  GemmStep step = conv_step(lowering, site.index);
  if (step.args.n < kLeastColumns) return refused("fewer than 8 columns a group");
  if (step.args.k > kernels::kMostInt8Depth) return refused("sums of more than 32768 products");
  return accepted([&site, step]() mutable {
    step.src = quantized_channels_last(site.lowering, site.node().inputs[0]);
    add_weights(site.lowering, site.epilogue, &step);
    add_int8_step(site.lowering, std::move(step), site.epilogue);
  });
}

}  // namespace tenon::onednn
