// SPDX-License-Identifier: Apache-2.0
// Reshape and other views, Transpose, Slice, Split, Expand: new views of the same memory where
// strides can say it, else one copy.

#include <algorithm>
#include <numeric>

#include "channel_moves.hpp"
#include "dense.hpp"
#include "lowering/element_places.hpp"
#include "shape_guard.hpp"
#include "slice_any.hpp"

namespace tenon::onednn {
namespace {

std::string refuse_types(const Graph& graph, const Node& node) {
  for (int output : node.outputs) {
    if (output == kNone) continue;
    if (graph.values[output].dims.size() > 8) return "more than eight axes";
  }
  return {};
}

// A dense copy with the stored type and quantization kept.
View dense_copy(Lowering& lowering,
                const std::string& name,
                const View& view,
                const Dims& strides) {
  View to = view;
  to.strides = strides;
  to.offset = 0;
  to.buffer = lowering.scratch(view.bytes());
  View from = view;
  View target = to;
  from.quant = target.quant = {};
  lowering.add_copy(name, from, target);
  return to;
}

// Strides of `dims` over the same elements in row-major order, when such strides exist: each group
// of axes that is split or merged must be walked with one step. (The rule of NumPy's reshape.) An
// axis of extent 1 lies around those behind it: a Concat along it then puts whole tensors in a row.
bool reshape_strides(const View& view, const Dims& dims, Dims* strides) {
  strides->assign(dims.size(), 1);
  Dims from_dims;
  Dims from_strides;
  for (size_t i = 0; i < view.dims.size(); ++i) {
    if (view.dims[i] == 1) continue;
    from_dims.push_back(view.dims[i]);
    from_strides.push_back(view.strides[i]);
  }
  size_t i = 0;
  size_t j = 0;
  while (i < from_dims.size() && j < dims.size()) {
    if (dims[j] == 1) {
      ++j;
      continue;
    }
    size_t i_end = i + 1;
    size_t j_end = j + 1;
    int64_t from_count = from_dims[i];
    int64_t to_count = dims[j];
    while (from_count != to_count) {
      if (from_count < to_count)
        from_count *= from_dims[i_end++];
      else
        to_count *= dims[j_end++];
    }
    for (size_t k = i; k + 1 < i_end; ++k) {
      if (from_strides[k] != from_strides[k + 1] * from_dims[k + 1]) return false;
    }
    int64_t stride = from_strides[i_end - 1];
    for (size_t k = j_end; k-- > j;) {
      (*strides)[k] = stride;
      stride *= dims[k];
    }
    i = i_end;
    j = j_end;
  }
  for (size_t k = dims.size(); k-- > 0;)
    if (dims[k] == 1 && k + 1 < dims.size()) (*strides)[k] = (*strides)[k + 1] * dims[k + 1];
  return true;
}

// Strides for a copy of `view` that read as `dims` are an image with channels last; false when they
// do not exist, or when the elements do not come in such an order. A shuffle of channels between
// convolutions is then one copy, and no way to row-major and back.
bool channels_last_copy(const View& view, const Dims& dims, Dims* strides) {
  const bool is_image = dims.size() == 4 || dims.size() == 5;
  if (!is_image || view.dims.empty() || view.dims.back() == 1 || view.strides.back() == 1)
    return false;
  View wanted;
  wanted.dims = dims;
  wanted.strides = channels_last_strides(dims);
  return reshape_strides(wanted, view.dims, strides);
}

}  // namespace

std::string refuse_reshape(const Graph& graph, const Node& node) {
  if (node.outputs.size() > 1 && node.outputs[1] != kNone) return "a second output";
  if (node.op == "Dropout" && node.input(2) != kNone) return "training mode";
  if (graph.values[node.inputs[0]].count() != graph.values[node.outputs[0]].count())
    return "the declared shape has another number of elements";
  return refuse_types(graph, node);
}

void lower_reshape(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  guard_shape(lowering, index);
  if (lower_channel_shuffle(lowering, index)) return;
  View view = lowering.view(node.inputs[0]);
  const Dims& dims = lowering.graph().values[node.outputs[0]].dims;
  if (view.channels != nullptr) view = lowering.dequantized_constant(view);
  Dims strides;
  if (view.count() > 0 && reshape_strides(view, dims, &strides)) {
    // the same memory
  } else if (Dims inner; view.count() > 0 && channels_last_copy(view, dims, &inner)) {
    view = dense_copy(lowering, "reorder " + node.name, view, inner);
    strides = channels_last_strides(dims);
  } else {
    view = dense_copy(lowering, "reorder " + node.name, view, row_major_strides(view.dims));
    strides = row_major_strides(dims);
  }
  view.dims = dims;
  view.strides = strides;
  lowering.set_view(node.outputs[0], view);
}

std::string refuse_transpose(const Graph& graph, const Node& node) {
  return refuse_types(graph, node);
}

void lower_transpose(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  View view = lowering.view(node.inputs[0]);
  if (view.channels != nullptr) view = lowering.dequantized_constant(view);
  Dims reversed(view.dims.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  Dims perm = node.integers("perm", reversed);
  View moved = view;
  for (size_t i = 0; i < perm.size(); ++i) {
    moved.dims[i] = view.dims[perm[i]];
    moved.strides[i] = view.strides[perm[i]];
  }
  lowering.set_view(node.outputs[0], moved);
}

// A view can say it: all parameters are constants and no step is negative.
static bool is_slice_view(const Graph& graph, const Node& node) {
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone && graph.values[node.inputs[i]].data == nullptr) return false;
  }
  if (node.input(4) == kNone) return true;
  const Value& steps = graph.values[node.inputs[4]];
  for (int64_t i = 0; i < steps.count(); ++i) {
    if (integer_at(steps.data, steps.type, i) < 0) return false;
  }
  return true;
}

std::string refuse_slice(const Graph& graph, const Node& node) {
  return refuse_slice_any(graph, node);
}

void lower_slice(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (!is_slice_view(lowering.graph(), node)) return lower_slice_any(lowering, index);
  View view = lowering.view(node.inputs[0]);
  if (view.channels != nullptr) view = lowering.dequantized_constant(view);
  view = sliced(lowering, node, std::move(view));
  if (interleaves(view)) view = dense_copy(lowering, node.name, view, row_major_strides(view.dims));
  lowering.set_view(node.outputs[0], view);
}

std::string refuse_split(const Graph& graph, const Node& node) {
  Dims rest = graph.values[node.inputs[0]].dims;
  int64_t axis = positive_axis(node.integer("axis", 0), rest.size());
  if (axis < 0 || axis >= static_cast<int64_t>(rest.size())) return "an axis that is not there";
  for (int output : node.outputs) {
    if (output == kNone) return "a part that nobody takes";
    const Dims& part = graph.values[output].dims;
    if (part.size() == rest.size())
      rest[static_cast<size_t>(axis)] -= part[static_cast<size_t>(axis)];
  }
  if (rest[static_cast<size_t>(axis)] != 0) return "declared parts that are not the whole";
  return refuse_types(graph, node);
}

void lower_split(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  guard_shape(lowering, index);
  View view = lowering.view(node.inputs[0]);
  if (view.channels != nullptr) view = lowering.dequantized_constant(view);
  const int64_t axis = positive_axis(node.integer("axis", 0), view.dims.size());
  for (int output : node.outputs) {
    if (output == kNone) continue;
    View part = view;
    part.dims = lowering.graph().values[output].dims;
    lowering.set_view(output, part);
    view.offset += part.dims[axis] * view.strides[axis];
  }
}

std::string refuse_expand(const Graph& graph, const Node& node) {
  const Dims& from = graph.values[node.inputs[0]].dims;
  const Dims& to = graph.values[node.outputs[0]].dims;
  bool fits = from.size() <= to.size();
  for (size_t back = 1; fits && back <= from.size(); ++back)
    fits = from[from.size() - back] == 1 || from[from.size() - back] == to[to.size() - back];
  if (!fits) return "a declared shape that the input does not broadcast to";
  return refuse_types(graph, node);
}

void lower_expand(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  guard_shape(lowering, index);
  View view = lowering.view(node.inputs[0]);
  if (view.channels != nullptr) view = lowering.dequantized_constant(view);
  const Dims& dims = lowering.graph().values[node.outputs[0]].dims;
  View from = view;
  from.quant = {};
  from.dims = dims;
  from.strides = broadcast_strides(view, dims);
  View to{.type = view.type, .dims = dims, .strides = row_major_strides(dims), .quant = view.quant};
  to.buffer = lowering.scratch(to.bytes());
  View target = to;
  target.quant = {};
  lowering.add_copy(node.name, from, target);
  lowering.set_view(node.outputs[0], to);
}

}  // namespace tenon::onednn
