// SPDX-License-Identifier: Apache-2.0
// MatMulInteger by oneDNN, with zero points that may be known only when it runs, and
// DynamicQuantizeLinear, which makes them. oneDNN takes the second operand signed: bytes without a
// sign lose 128, and so does their zero point.

#include <algorithm>

#include "dense.hpp"
#include "kernels/quantize.h"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;

void flip(const uint8_t* from, int64_t n, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<uint8_t>(from[i] ^ 0x80U);
}

// The operand's bytes as signed numbers, 128 less.
View flipped(Lowering& lowering, const std::string& name, const View& view) {
  View made = view;
  made.type = ElementType::kS8;
  made.offset = 0;
  const int64_t n = view.count();
  if (lowering.is_constant_view(view)) {
    std::shared_ptr<void> data = aligned_bytes(n);
    flip(static_cast<const uint8_t*>(lowering.constant_data(view)), n,
         static_cast<uint8_t*>(data.get()));
    return lowering.make_constant(ElementType::kS8, view.dims, data);
  }
  made.buffer = lowering.scratch(n);
  Step step{.name = name + " sign", .kernel = "tenon:sign"};
  step.places = {place_of(view), place_of(made)};
  step.kernel_function = [n](const kernels::Context&, void* const* pointers) -> const char* {
    flip(static_cast<const uint8_t*>(pointers[0]), n, static_cast<uint8_t*>(pointers[1]));
    return nullptr;
  };
  lowering.add_step(std::move(step));
  return made;
}

// One i32 for oneDNN from the node's zero point, less `shift`.
Place zero_point(Lowering& lowering, const Node& node, size_t input, int32_t shift) {
  if (node.input(input) == kNone) return lowering.integers({-shift});
  const ElementType type = lowering.graph().values[node.inputs[input]].type;
  View given = lowering.read_row_major(node.inputs[input], type);
  Place made{lowering.scratch(4), 0};
  Step step{.name = node.name + " zero point", .kernel = "tenon:zero_point"};
  step.places = {place_of(given), made};
  step.kernel_function = [type, shift](const kernels::Context&,
                                       void* const* pointers) -> const char* {
    int32_t value = type == ElementType::kS8 ? *static_cast<const int8_t*>(pointers[0])
                                             : *static_cast<const uint8_t*>(pointers[0]);
    *static_cast<int32_t*>(pointers[1]) = value - shift;
    return nullptr;
  };
  lowering.add_step(std::move(step));
  return made;
}

Desc batched(const View& view, size_t rank) {
  Dims dims = view.dims;
  dims.insert(dims.begin(), rank - dims.size(), 1);
  return {dims, dnnl_type(view.type), row_major_strides(dims)};
}

}  // namespace

std::string refuse_matmul_integer(const Graph& graph, const Node& node) {
  for (size_t i : {0, 1}) {
    const Value& value = graph.values[node.inputs[i]];
    if (value.type != ElementType::kU8 && value.type != ElementType::kS8) return "only bytes";
    if (value.dims.size() < 2 || value.dims.size() > 6) return "only two to six axes";
    bool has_zero = node.input(i + 2) != kNone;
    if (!has_zero) continue;
    const Value& zero = graph.values[node.inputs[i + 2]];
    if (zero.count() != 1 || zero.type != value.type) return "zero points per row or column";
  }
  return {};
}

void lower_matmul_integer(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Value& result = graph.values[node.outputs[0]];
  View a = lowering.read_row_major(node.inputs[0], graph.values[node.inputs[0]].type);
  View b = lowering.read_row_major(node.inputs[1], graph.values[node.inputs[1]].type);
  const int32_t shift = b.type == ElementType::kU8 ? 128 : 0;
  if (shift != 0) b = flipped(lowering, node.name, b);
  Place a_zero = zero_point(lowering, node, 2, 0);
  Place b_zero = zero_point(lowering, node, 3, shift);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
  attr.set_zero_points_mask(DNNL_ARG_WEIGHTS, 0);
  View y = lowering.make(node.outputs[0], ElementType::kI32, row_major_strides(result.dims));
  const size_t rank = result.dims.size();
  const Desc a_desc = batched(a, rank);
  const Desc b_desc = batched(b, rank);
  const Desc y_desc = batched(y, rank);
  const Desc one({1}, dnnl::memory::data_type::s32, dnnl::memory::dims{1});
  dnnl::matmul::primitive_desc pd(lowering.engine(), a_desc, b_desc, y_desc, attr);
  lowering.add_primitive(node.name, pd.impl_info_str(), dnnl::matmul(pd), pd.scratchpad_desc(),
                         {{DNNL_ARG_SRC, place_of(a), a_desc},
                          {DNNL_ARG_WEIGHTS, place_of(b), b_desc},
                          {DNNL_ARG_DST, place_of(y), y_desc},
                          {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, a_zero, one},
                          {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_WEIGHTS, b_zero, one}},
                         2.0 * static_cast<double>(y.count() * a.dims.back()));
}

std::string refuse_dynamic_quantize(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 3) return "expected three results";
  for (int output : node.outputs) {
    if (output == kNone) return "expected three results";
  }
  return graph.values[node.inputs[0]].type == ElementType::kF32 ? "" : "only f32";
}

void lower_dynamic_quantize(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const int64_t n = graph.values[graph.nodes[index].inputs[0]].count();
  lower_dense(lowering, index, "tenon:dynamic_quantize",
              [n](const kernels::Context& context, void* const* pointers) -> const char* {
                kernels::dynamic_quantize(context, static_cast<const float*>(pointers[0]), n,
                                          static_cast<uint8_t*>(pointers[1]),
                                          static_cast<float*>(pointers[2]),
                                          static_cast<uint8_t*>(pointers[3]));
                return nullptr;
              });
}

}  // namespace tenon::onednn
