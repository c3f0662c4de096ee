// SPDX-License-Identifier: Apache-2.0
// Conv of codes as a product: a row is what the window sees at one place of a channels-last image.

#include "code_product.hpp"
#include "conv_geometry.hpp"

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

CodeStep conv_step(const Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& src = lowering.view(node.inputs[0]).dims;
  const View weights = lowering.view(node.inputs[1]);
  const int64_t groups = node.integer("group", 1);
  const Dims& dst = graph.values[node.outputs[0]].dims;
  const Window window =
      find_window(node, src, dst, Dims(weights.dims.begin() + 2, weights.dims.end()));
  CodeStep step{.node = index, .bias = node.input(2)};
  step.args.m = dst[0] * element_count(Dims(dst.begin() + 2, dst.end()));
  step.args.n = weights.dims[0] / groups;
  step.args.k = weights.count() / weights.dims[0];
  step.weights = {.view = weights,
                  .groups = groups,
                  .group_stride = step.args.n * weights.strides[0],
                  .n_stride = weights.strides[0],
                  .k_places = tap_places(weights)};
  kernels::CodeWindows& w = step.args.a.windows;
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

bool lower_code_conv(Lowering& lowering, int index, const Tail& tail) {
  const Node& node = lowering.graph().nodes[index];
  const View src = lowering.view(node.inputs[0]);
  if (!is_dense(lowering.view(node.inputs[1])) || src.dims.size() > 4 ||
      !has_known_bias(lowering, node.input(2)))
    return false;
  CodeStep step = conv_step(lowering, index);
  if (step.args.n < kLeastColumns || step.args.k > kernels::kMostCodesOfRow) return false;
  if (tail.norm != kNone) step.norm = channel_norm(lowering, tail.norm);
  step.src = lowering.read_stored(node.inputs[0], channels_last_strides(src.dims), src.type);
  lowering.set_view(node.inputs[0], step.src);  // later readers want it channels-last too
  add_code_step(lowering, std::move(step), tail);
  return true;
}

}  // namespace tenon::onednn
