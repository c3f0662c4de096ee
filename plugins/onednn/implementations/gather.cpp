// SPDX-License-Identifier: Apache-2.0
// Gather along one axis, and Pad with a constant: rows copied to their place.

#include "kernels/gather.h"

#include <algorithm>

#include "dense.hpp"
#include "slice_any.hpp"

namespace tenon::onednn {
namespace {

// Of the shapes; what the pointers are is known when it runs: data, indices, result.
const char* gather_rows(kernels::GatherArgs args,
                        const kernels::Context& context,
                        void* const* pointers) {
  args.src = pointers[0];
  args.ids = pointers[1];
  args.dst = pointers[2];
  const int64_t outside = kernels::gather_rows(context, args);
  if (outside < 0) return nullptr;
  int64_t index = integer_at(args.ids, args.ids_type, outside);
  (void)resolve_index(&index, args.m);
  return outside_text();
}

}  // namespace

std::string refuse_gather(const Graph& graph, const Node& node) {
  ElementType index = graph.values[node.inputs[1]].type;
  bool is_integer = index == ElementType::kI64 || index == ElementType::kI32;
  return is_integer ? "" : "only i32 and i64 indices";
}

void lower_gather(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  const Value& value = lowering.graph().values[node.outputs[0]];
  const Value& indices = lowering.graph().values[node.inputs[1]];
  View data = lowering.view(node.inputs[0]);
  data = data.channels != nullptr
             ? lowering.dequantized_constant(data)
             : lowering.read_stored(node.inputs[0], row_major_strides(data.dims), data.type);
  View at = lowering.read_row_major(node.inputs[1], indices.type);
  size_t axis = static_cast<size_t>(
      node.integer("axis", 0) < 0 ? node.integer("axis", 0) + static_cast<int64_t>(data.dims.size())
                                  : node.integer("axis", 0));
  kernels::GatherArgs shape{.m = data.dims[axis],
                            .row_bytes = kernels::element_bytes(data.type),
                            .ids_type = indices.type,
                            .n = indices.count()};
  for (size_t i = 0; i < data.dims.size(); ++i) {
    if (i < axis) shape.outer *= data.dims[i];
    if (i > axis) shape.row_bytes *= data.dims[i];
  }
  View dst{.type = data.type,
           .dims = value.dims,
           .strides = row_major_strides(value.dims),
           .quant = data.quant};
  dst.buffer = lowering.scratch(dst.bytes());
  Step step{.name = node.name, .kernel = "tenon:gather"};
  step.bytes = static_cast<double>(2 * dst.bytes() + at.bytes());
  step.places = {place_of(data), place_of(at), place_of(dst)};
  step.kernel_function = [shape](const kernels::Context& context, void* const* pointers) {
    return gather_rows(shape, context, pointers);
  };
  lowering.add_step(std::move(step));
  lowering.set_view(node.outputs[0], dst);
}

// A fill and a copy that keep the layout: f32, constant pads that only add.
static bool is_plain_pad(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (node.text("mode", "constant") != "constant" || src.type != ElementType::kF32) return false;
  if (src.dims.size() > 6 || src.count() == 0) return false;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone && graph.values[node.inputs[i]].data == nullptr) return false;
  }
  const Value& pads = graph.values[node.inputs[1]];
  for (int64_t i = 0; i < pads.count(); ++i) {
    if (integer_at(pads.data, pads.type, i) < 0) return false;
  }
  return true;
}

std::string refuse_pad(const Graph& graph, const Node& node) {
  return refuse_pad_any(graph, node);
}

void lower_pad(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (!is_plain_pad(lowering.graph(), node)) return lower_pad_any(lowering, index);
  const Value& value = lowering.graph().values[node.outputs[0]];
  View src = lowering.read_real(node.inputs[0]);
  Dims pads = lowering.constant_integers(node.inputs[1]);
  Dims axes;
  size_t n_axes = pads.size() / 2;
  if (node.input(3) != kNone) axes = lowering.constant_integers(node.inputs[3]);
  float filler = 0;
  if (node.input(2) != kNone) filler = lowering.constant_floats(node.inputs[2])[0];
  View dst{.type = ElementType::kF32,
           .dims = value.dims,
           .strides = dense_strides_like(value.dims, src.strides)};
  dst.buffer = lowering.scratch(dst.bytes());
  Step fill{.name = node.name, .kernel = "tenon:fill", .always_succeeds = true};
  fill.places = {place_of(dst)};
  fill.bytes = static_cast<double>(dst.bytes());
  int64_t count = dst.count();
  fill.kernel_function = [filler, count](const kernels::Context&,
                                         void* const* pointers) -> const char* {
    std::fill_n(static_cast<float*>(pointers[0]), count, filler);
    return nullptr;
  };
  lowering.add_step(std::move(fill));
  View inside = dst;
  inside.dims = src.dims;
  for (size_t i = 0; i < n_axes; ++i) {
    const int64_t axis =
        axes.empty() ? static_cast<int64_t>(i) : positive_axis(axes[i], dst.dims.size());
    inside.offset += pads[i] * dst.strides[axis];
  }
  lowering.add_copy(node.name, src, inside);
  lowering.set_view(node.outputs[0], dst);
}

}  // namespace tenon::onednn
