// SPDX-License-Identifier: Apache-2.0
#include "conv_geometry.hpp"

#include <algorithm>

namespace tenon::onednn {

std::string refuse_image(const Value& value) {
  if (value.type != ElementType::kF32) return "only f32 inputs (int8 through DequantizeLinear)";
  if (value.dims.size() < 3 || value.dims.size() > 5) return "only 1, 2 or 3 spatial axes";
  return value.count() == 0 ? "empty tensor" : "";
}

Dims pads_of(const Node& node, size_t n_spatial) {
  const Dims none(2 * n_spatial, 0);
  return node.text("auto_pad", "NOTSET") == "NOTSET" ? node.integers("pads", none) : none;
}

Window find_window(const Node& node, const Dims& in, const Dims& out, const Dims& kernel) {
  size_t n_spatial = kernel.size();
  Window window;
  window.kernel = kernel;
  window.strides = node.integers("strides", Dims(n_spatial, 1));
  Dims dilations = node.integers("dilations", Dims(n_spatial, 1));
  const std::string auto_pad = node.text("auto_pad", "NOTSET");
  const Dims pads = pads_of(node, n_spatial);
  // Of a ConvTranspose. A stated shape counts, whatever pads say.
  const Dims output_padding = node.integers("output_padding", Dims(n_spatial, 0));
  const bool states_shape = !node.integers("output_shape").empty();
  for (size_t i = 0; i < n_spatial; ++i) {
    window.dilates.push_back(dilations[i] - 1);
    int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    int64_t total = (out[i + 2] - 1) * window.strides[i] + reach - in[i + 2];
    const int64_t cut = std::max<int64_t>(total + output_padding[i], 0);
    int64_t begin = auto_pad == "VALID" ? 0 : pads[i];
    if (auto_pad == "SAME_LOWER" || states_shape) begin = (cut + 1) / 2;
    if (auto_pad == "SAME_UPPER") begin = cut / 2;
    window.pad_begin.push_back(begin);
    window.pad_end.push_back(total - begin);
  }
  return window;
}

kernels::Windows windows_of(const Dims& in, const Dims& out, const Window& window) {
  kernels::Windows made;
  made.width = in.back();
  made.out_width = out.back();
  made.window_width = window.kernel.back();
  made.stride_x = window.strides.back();
  made.step_x = window.dilates.back() + 1;
  made.pad_left = window.pad_begin.back();
  if (in.size() != 4) return made;
  made.height = in[2];
  made.out_height = out[2];
  made.window_height = window.kernel[0];
  made.stride_y = window.strides[0];
  made.step_y = window.dilates[0] + 1;
  made.pad_top = window.pad_begin[0];
  return made;
}

kernels::Windows windows_of(const Graph& graph, const Node& node) {
  const Dims& weights = graph.values[node.inputs[1]].dims;
  const Dims& src = graph.values[node.inputs[0]].dims;
  const Dims& dst = graph.values[node.outputs[0]].dims;
  return windows_of(src, dst,
                    find_window(node, src, dst, Dims(weights.begin() + 2, weights.end())));
}

bool is_depthwise(const Graph& graph, const Node& node) {
  const Dims& weights = graph.values[node.inputs[1]].dims;
  const int64_t channels = graph.values[node.inputs[0]].dims[1];
  return node.integer("group", 1) == channels && weights[0] == channels && weights[1] == 1;
}

int64_t filters_of_each(const Graph& graph, const Node& node) {
  const int64_t channels = graph.values[node.inputs[0]].dims[1];
  const bool is_alone = channels > 1 && node.integer("group", 1) == channels;
  return is_alone ? graph.values[node.inputs[1]].dims[0] / channels : 0;
}

}  // namespace tenon::onednn
