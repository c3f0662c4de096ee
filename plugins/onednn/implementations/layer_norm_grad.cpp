// SPDX-License-Identifier: Apache-2.0
// tenon:LayerNormGrad by oneDNN's backward primitive, which is given rows that are centred already.

#include "handlers.hpp"
#include "kernels/norm.h"
#include "lowering/lowering.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Flags = dnnl::normalization_flags;

int64_t normalized_size(const Graph& graph, const Node& node) {
  const Dims& dims = graph.values[node.inputs[1]].dims;
  const int64_t axis = positive_axis(node.integer("axis", -1), dims.size());
  return element_count(Dims(dims.begin() + axis, dims.end()));
}

struct Rows {
  int64_t count, size;
  float epsilon;
};

struct Centred {
  Place x, variance;
};

// x - mean of each row in f32, and the variance. oneDNN would take x and a mean of f32, whose
// rounding is many digits of the spread where the mean is far larger.
Centred centred(Lowering& lowering, const Node& node, const Rows& rows, const View& x) {
  Centred made{{lowering.scratch(x.count() * 4), 0}, {lowering.scratch(rows.count * 4), 0}};
  kernels::NormArgs args{.kind = kernels::Norm::kCentre,
                         .src = {.type = x.type},
                         .rows = rows.count,
                         .n = rows.size,
                         .epsilon = rows.epsilon};
  Step step{.name = node.name + " centred", .kernel = "tenon:centre", .always_succeeds = true};
  step.bytes = static_cast<double>(x.bytes() + x.count() * 4);
  step.places = {place_of(x), made.x, made.variance};
  step.kernel_function = [args](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    kernels::NormArgs call = args;
    call.src.data = pointers[0];
    call.dst.data = pointers[1];
    call.inv_std = static_cast<float*>(pointers[2]);
    kernels::normalize(context, call);
    for (int64_t i = 0; i < call.rows; ++i)  // what oneDNN will divide by is sqrt(this + epsilon)
      call.inv_std[i] = 1.0F / (call.inv_std[i] * call.inv_std[i]) - call.epsilon;
    return nullptr;
  };
  lowering.add_step(std::move(step));
  return made;
}

}  // namespace

std::string refuse_layer_norm_grad(const Graph& graph, const Node& node) {
  const Value& x = graph.values[node.inputs[1]];
  if (x.type != ElementType::kF32 || x.count() == 0) return "only f32 that is not empty";
  return {};
}

void lower_layer_norm_grad(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const ElementType type = lowering.real_type();
  View dy = lowering.read_row_major(node.inputs[0], type);
  // As it is stored: rounded to bf16, rows far from 0 would be nothing but their mean.
  const bool is_f32 = lowering.view(node.inputs[1]).type == ElementType::kF32;
  View x = lowering.read_row_major(node.inputs[1], is_f32 ? ElementType::kF32 : type);
  Rows rows{0, normalized_size(graph, node), static_cast<float>(node.real("epsilon", 1e-5))};
  rows.count = x.count() / rows.size;
  const Dims dims = {rows.count, rows.size};
  Desc data(dims, dnnl_type(type), row_major_strides(dims));
  Desc source(dims, dnnl::memory::data_type::f32, row_major_strides(dims));
  Desc each = vector_descriptor(rows.count);
  Desc row = vector_descriptor(rows.size);
  const Flags flags = Flags::use_scale | Flags::use_shift;
  dnnl::layer_normalization_forward::primitive_desc forward(
      lowering.engine(), dnnl::prop_kind::forward_training, source, data, each, rows.epsilon, flags,
      new_attr());
  dnnl::layer_normalization_backward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::backward, data, data, source, each, rows.epsilon, flags,
      forward, new_attr());
  Place scale = place_of(lowering.read_row_major(node.inputs[2], ElementType::kF32));
  const Centred given = centred(lowering, node, rows, x);
  const Place zeros = lowering.floats(std::vector<float>(static_cast<size_t>(rows.count)));
  View dx = lowering.make(node.outputs[0], type, row_major_strides(x.dims));
  auto sums = [&](size_t i) {
    int value = i < node.outputs.size() ? node.outputs[i] : kNone;
    if (value == kNone) return Place{lowering.scratch(rows.size * 4), 0};
    const Dims& shape = graph.values[value].dims;
    return place_of(lowering.make(value, ElementType::kF32, row_major_strides(shape)));
  };
  lowering.add_primitive<dnnl::layer_normalization_backward>(
      node.name, pd,
      {{DNNL_ARG_SRC, given.x, source},
       {DNNL_ARG_DIFF_DST, place_of(dy), data},
       {DNNL_ARG_DIFF_SRC, place_of(dx), data},
       {DNNL_ARG_SCALE, scale, row},
       {DNNL_ARG_SHIFT, scale, row},  // asked for, not read
       {DNNL_ARG_DIFF_SCALE, sums(1), row},
       {DNNL_ARG_DIFF_SHIFT, sums(2), row},
       {DNNL_ARG_MEAN, zeros, each},
       {DNNL_ARG_VARIANCE, given.variance, each}},
      11.0 * static_cast<double>(x.count()));
}

}  // namespace tenon::onednn
