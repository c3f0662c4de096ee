// SPDX-License-Identifier: Apache-2.0
#include "element_places.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace tenon::onednn {
namespace {

constexpr std::string_view kKeepOrder[] = {"Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                           "Identity"};

Places transposed_places(const Dims& from, const Dims& to, const Dims& perm) {
  const Dims before = row_major_strides(from);
  Dims strides;
  for (int64_t axis : perm)
    strides.push_back(before[static_cast<size_t>(axis)]);
  return strided_places(to, strides);
}

Places split_places(const Graph& graph, const Node& node, size_t output) {
  const Dims& from = graph.values[node.inputs[0]].dims;
  const Dims strides = row_major_strides(from);
  const auto axis = static_cast<size_t>(positive_axis(node.integer("axis", 0), from.size()));
  int64_t before = 0;
  for (size_t i = 0; i < output; ++i)
    before += graph.values[node.outputs[i]].dims[axis];
  return strided_places(graph.values[node.outputs[output]].dims, strides, before * strides[axis]);
}

// Of constants at both ends of axes; nothing for another mode, or where what is negative cuts.
std::optional<Places> padded_places(const Lowering& lowering, const Node& node) {
  const Dims& from = lowering.graph().values[node.inputs[0]].dims;
  const bool is_real = lowering.graph().values[node.inputs[0]].type == ElementType::kF32;
  if (!is_real || node.text("mode", "constant") != "constant" || node.input(1) == kNone) return {};
  const Dims pads = lowering.constant_integers(node.inputs[1]);
  Dims axes(pads.size() / 2), begin(from.size(), 0);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.input(3) != kNone) axes = lowering.constant_integers(node.inputs[3]);
  if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad < 0; })) return {};
  for (size_t i = 0; i < axes.size(); ++i)
    begin[static_cast<size_t>(positive_axis(axes[i], from.size()))] = pads[i];
  const Dims& to = lowering.graph().values[node.outputs[0]].dims;
  const Dims strides = row_major_strides(to);
  Places places(static_cast<size_t>(element_count(to)), kFiller);
  const int64_t first = std::inner_product(begin.begin(), begin.end(), strides.begin(), int64_t{0});
  size_t element = 0;
  for (size_t place : strided_places(from, strides, first))
    places[place] = element++;
  return places;
}

}  // namespace

View sliced(const Lowering& lowering, const Node& node, View view) {
  const Dims starts = lowering.constant_integers(node.inputs[1]);
  Dims axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.input(3) != kNone) axes = lowering.constant_integers(node.inputs[3]);
  if (node.input(4) != kNone) steps = lowering.constant_integers(node.inputs[4]);
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto axis = static_cast<size_t>(positive_axis(axes[i], view.dims.size()));
    const int64_t extent = view.dims[axis];
    const int64_t start = starts[i] < 0 ? starts[i] + extent : starts[i];
    view.offset +=
        std::clamp<int64_t>(start, 0, steps[i] < 0 ? extent - 1 : extent) * view.strides[axis];
    // Where a step leads past the end there is one entry, and no stride to speak of.
    view.strides[axis] *= std::clamp(steps[i], -extent - 1, extent + 1);
  }
  view.dims = lowering.graph().values[node.outputs[0]].dims;
  return view;
}

Places strided_places(const Dims& dims, const Dims& strides, int64_t offset) {
  Places found;
  Dims at(dims.size(), 0);
  for (int64_t left = element_count(dims); left > 0; --left) {
    found.push_back(
        static_cast<size_t>(std::inner_product(at.begin(), at.end(), strides.begin(), offset)));
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis]) break;
      at[axis] = 0;
    }
  }
  return found;
}

Places broadcast_places(const Dims& from, const Dims& to) {
  const View view{.dims = from, .strides = row_major_strides(from)};
  return strided_places(to, broadcast_strides(view, to));
}

std::optional<Places> moved_places(const Lowering& lowering, const Node& node, size_t output) {
  const Graph& graph = lowering.graph();
  if (node.inputs.empty() || node.inputs[0] == kNone) return {};
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.inputs[i] != kNone && !lowering.is_constant(node.inputs[i]) &&
        element_count(graph.values[node.inputs[i]].dims) > 0)
      return {};
  const Dims& from = graph.values[node.inputs[0]].dims;
  const Dims& to = graph.values[node.outputs[0]].dims;
  if (node.op == "Split") return split_places(graph, node, output);
  if (node.outputs.size() != 1) return {};
  if (node.op == "Slice") {
    const View view = sliced(lowering, node, {.dims = from, .strides = row_major_strides(from)});
    return strided_places(view.dims, view.strides, view.offset);
  }
  if (node.op == "Pad") return padded_places(lowering, node);
  if (node.op == "Expand" && backend::broadcasts_to(from, to)) return broadcast_places(from, to);
  if (node.op == "Transpose") {
    Dims reversed(from.size());
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    return transposed_places(from, to, node.integers("perm", reversed));
  }
  const bool keeps_order =
      std::find(std::begin(kKeepOrder), std::end(kKeepOrder), node.op) != std::end(kKeepOrder);
  if (keeps_order && element_count(from) == element_count(to))
    return strided_places(to, row_major_strides(to));
  return {};
}

}  // namespace tenon::onednn
