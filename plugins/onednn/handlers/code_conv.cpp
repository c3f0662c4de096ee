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

bool lower_code_conv(Lowering& lowering, int index, const Tail& tail) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const View src = lowering.view(node.inputs[0]);
  const View weights = lowering.view(node.inputs[1]);
  const int64_t groups = node.integer("group", 1);
  const int64_t columns = weights.dims[0] / groups;
  const int64_t k = weights.count() / weights.dims[0];
  const bool applies = is_dense(weights) && src.dims.size() <= 4 && columns >= kLeastColumns &&
                       k <= kernels::kMostCodesOfRow && has_known_bias(lowering, node.input(2));
  if (!applies) return false;
  const Dims& dst = graph.values[node.outputs[0]].dims;
  const Window window =
      find_window(node, src.dims, dst, Dims(weights.dims.begin() + 2, weights.dims.end()));
  CodeStep step{.node = index, .bias = node.input(2)};
  step.src = lowering.read_stored(node.inputs[0], channels_last_strides(src.dims), src.type);
  lowering.set_view(node.inputs[0], step.src);  // later readers want it channels-last too
  step.weights = {.view = weights,
                  .groups = groups,
                  .group_stride = columns * weights.strides[0],
                  .n_stride = weights.strides[0],
                  .k_places = tap_places(weights)};
  step.args.m = dst[0] * element_count(Dims(dst.begin() + 2, dst.end()));
  step.args.n = columns;
  step.args.k = k;
  kernels::CodeWindows& w = step.args.a.windows;
  w = {windows_of(src.dims, dst, window), src.dims[1], weights.dims[1]};
  const bool is_plain = groups == 1 && element_count(window.kernel) == 1 && w.stride_x == 1 &&
                        w.stride_y == 1 && w.pad_left == 0 && w.pad_top == 0 &&
                        w.out_width == w.width && w.out_height == w.height;
  step.args.a.has_windows = !is_plain;
  step.args.a.stride = k;
  step.src_group = weights.dims[1];
  step.dst_strides = channels_last_strides(dst);
  step.dst_row = dst[1];
  add_code_step(lowering, std::move(step), tail);
  return true;
}

}  // namespace tenon::onednn
