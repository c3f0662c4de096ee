// SPDX-License-Identifier: Apache-2.0
#pragma once
// A Conv's weights and window as oneDNN sees them, also where those are other axes than the node
// has.

#include <utility>

#include "conv_geometry.hpp"
#include "lowering/view.hpp"

namespace tenon::onednn {

// How oneDNN sees the operands.
enum class Seen : uint8_t { kAsItIs, kColumnAsRow, kSignalAsImage };

struct ConvShape {
  int64_t groups = 1;
  Dims weight_dims;  // [g,] o, i, spatial
  Window window;
  Seen seen = Seen::kAsItIs;
  double flops = 0;
};

inline bool is_column(const Dims& dims) {
  return dims.size() == 4 && dims[3] == 1;
}

inline void turn(ConvShape& shape) {
  Window& window = shape.window;
  for (Dims* dims :
       {&shape.weight_dims, &window.strides, &window.dilates, &window.pad_begin, &window.pad_end}) {
    std::swap(*(dims->end() - 1), *(dims->end() - 2));
  }
}

// With an axis of one row in front of the last axis.
inline View as_image(View view) {
  const int64_t row = view.strides.back() * view.dims.back();
  view.dims.insert(view.dims.end() - 1, 1);
  view.strides.insert(view.strides.end() - 1, row);
  return view;
}

inline void make_image(ConvShape& shape) {
  Window& window = shape.window;
  shape.weight_dims.insert(shape.weight_dims.end() - 1, 1);
  window.strides.insert(window.strides.begin(), 1);
  for (Dims* dims : {&window.dilates, &window.pad_begin, &window.pad_end})
    dims->insert(dims->begin(), 0);
}

inline ConvShape conv_shape(const Graph& graph, const Node& node) {
  const Dims& src = graph.values[node.inputs[0]].dims;
  const Dims& weights = graph.values[node.inputs[1]].dims;
  const Dims& dst = graph.values[node.outputs[0]].dims;
  ConvShape shape;
  shape.groups = node.integer("group", 1);
  shape.weight_dims = weights;
  if (shape.groups > 1) {
    shape.weight_dims[0] /= shape.groups;
    shape.weight_dims.insert(shape.weight_dims.begin(), shape.groups);
  }
  shape.window = find_window(node, src, dst, Dims(weights.begin() + 2, weights.end()));
  shape.flops = 2.0 * static_cast<double>(element_count(dst)) *
                static_cast<double>(element_count(weights) / weights[0]);
  return shape;
}

inline bool runs_on_columns(const Graph& graph, const Node& node) {
  return is_column(graph.values[node.inputs[0]].dims) &&
         is_column(graph.values[node.inputs[1]].dims) &&
         is_column(graph.values[node.outputs[0]].dims);
}

}  // namespace tenon::onednn
