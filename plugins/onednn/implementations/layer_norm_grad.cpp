// SPDX-License-Identifier: Apache-2.0
// tenon:LayerNormGrad by oneDNN's backward primitive. It wants mean and variance of each row: those
// of the forward step where it kept them, else of a forward primitive that runs for them.

#include "handlers.hpp"
#include "kept.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Flags = dnnl::normalization_flags;

int64_t normalised_size(const Graph& graph, const Node& node) {
  const Dims& dims = graph.values[node.inputs[1]].dims;
  int64_t axis = node.integer("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  return element_count(Dims(dims.begin() + axis, dims.end()));
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

struct Rows {
  int64_t count, size;
  float epsilon;
};

// 1/factor^2 - epsilon of each row: what the kernels keep is what they multiply with.
Place variances_of(Lowering& lowering, const Node& node, const Rows& rows, Place factors) {
  Place made{lowering.scratch(rows.count * 4), 0};
  Step step{.name = node.name + " variance", .kernel = "tenon:variance"};
  step.places = {factors, made};
  step.kernel_function = [rows](const kernels::Context&, void* const* pointers) -> const char* {
    const float* factor = static_cast<const float*>(pointers[0]);
    float* variance = static_cast<float*>(pointers[1]);
    for (int64_t i = 0; i < rows.count; ++i)
      variance[i] = 1.0F / (factor[i] * factor[i]) - rows.epsilon;
    return nullptr;
  };
  lowering.add_step(std::move(step));
  return made;
}

struct Statistics {
  Place mean, variance;
};

Statistics computed(Lowering& lowering,
                    const Node& node,
                    const dnnl::layer_normalization_forward::primitive_desc& forward,
                    const View& x,
                    Place scale) {
  const int64_t bytes = static_cast<int64_t>(forward.mean_desc().get_size());
  Statistics made{{lowering.scratch(bytes), 0}, {lowering.scratch(bytes), 0}};
  Place nowhere{lowering.scratch(x.bytes()), 0};
  Desc row = forward.weights_desc();
  lowering.add_primitive(node.name + " statistics", forward.impl_info_str(),
                         dnnl::layer_normalization_forward(forward), forward.scratchpad_desc(),
                         {{DNNL_ARG_SRC, place_of(x), forward.src_desc()},
                          {DNNL_ARG_DST, nowhere, forward.dst_desc()},
                          {DNNL_ARG_SCALE, scale, row},
                          {DNNL_ARG_SHIFT, scale, row},
                          {DNNL_ARG_MEAN, made.mean, forward.mean_desc()},
                          {DNNL_ARG_VARIANCE, made.variance, forward.mean_desc()}},
                         4.0 * static_cast<double>(x.count()));
  return made;
}

}  // namespace

std::string layer_norm_key(const Node& node, int64_t size, const char* what) {
  return "layer_norm." + std::string(what) + " " + std::to_string(size) + " " +
         std::to_string(node.real("epsilon", 1e-5) * 1e9);
}

bool wants_statistics(const Graph& graph, int x) {
  for (int user : graph.values[x].users) {
    const Node& node = graph.nodes[user];
    if (node.op == "tenon.LayerNormGrad" && node.inputs[1] == x) return true;
  }
  return false;
}

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
  View x = lowering.read_row_major(node.inputs[1], type);
  Rows rows{0, normalised_size(graph, node), static_cast<float>(node.real("epsilon", 1e-5))};
  rows.count = x.count() / rows.size;
  const Dims dims = {rows.count, rows.size};
  Desc data(dims, dnnl_type(type), row_major_strides(dims));
  Desc each({rows.count}, dnnl::memory::data_type::f32, dnnl::memory::dims{1});
  Desc row({rows.size}, dnnl::memory::data_type::f32, dnnl::memory::dims{1});
  const Flags flags = Flags::use_scale | Flags::use_shift;
  dnnl::layer_normalization_forward::primitive_desc forward(
      lowering.engine(), dnnl::prop_kind::forward_training, data, data, each, rows.epsilon, flags,
      user_scratchpad());
  dnnl::layer_normalization_backward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::backward, data, data, data, each, rows.epsilon, flags,
      forward, user_scratchpad());
  Place scale = place_of(lowering.read_row_major(node.inputs[2], ElementType::kF32));
  const int input = node.inputs[1];
  const Place* mean = lowering.kept(input, layer_norm_key(node, rows.size, "mean"));
  const Place* factor = lowering.kept(input, layer_norm_key(node, rows.size, "factor"));
  Statistics given;
  if (mean != nullptr)
    given = {*mean, variances_of(lowering, node, rows, *factor)};
  else
    given = computed(lowering, node, forward, x, scale);
  View dx = lowering.make(node.outputs[0], type, row_major_strides(x.dims));
  auto sums = [&](size_t i) {
    int value = i < node.outputs.size() ? node.outputs[i] : kNone;
    if (value == kNone) return Place{lowering.scratch(rows.size * 4), 0};
    const Dims& shape = graph.values[value].dims;
    return place_of(lowering.make(value, ElementType::kF32, row_major_strides(shape)));
  };
  lowering.add_primitive(node.name, pd.impl_info_str(), dnnl::layer_normalization_backward(pd),
                         pd.scratchpad_desc(),
                         {{DNNL_ARG_SRC, place_of(x), data},
                          {DNNL_ARG_DIFF_DST, place_of(dy), data},
                          {DNNL_ARG_DIFF_SRC, place_of(dx), data},
                          {DNNL_ARG_SCALE, scale, row},
                          {DNNL_ARG_SHIFT, scale, row},  // asked for, not read
                          {DNNL_ARG_DIFF_SCALE, sums(1), row},
                          {DNNL_ARG_DIFF_SHIFT, sums(2), row},
                          {DNNL_ARG_MEAN, given.mean, each},
                          {DNNL_ARG_VARIANCE, given.variance, each}},
                         11.0 * static_cast<double>(x.count()));
}

}  // namespace tenon::onednn
