// SPDX-License-Identifier: Apache-2.0
// BatchNormalization over the batch's own statistics and tenon:BatchNormGrad, by oneDNN's training
// primitives or, with channels that those have no vector code for, by own kernels. The forward step
// keeps mean, variance and, where a Relu went into it, what shows its mask, for the backward step
// of the same input.

#include <optional>

#include "handlers.hpp"
#include "kept.hpp"
#include "own_batch_norm.hpp"
#include "rewrites/join_activations.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Flags = dnnl::normalization_flags;

std::string kept_key(const Node& node, const char* what) {
  return std::string("batch_norm.") + what + " " + std::to_string(node.real("epsilon", 1e-5));
}
// Statistics are those of the input, whichever normalization read it; a mask is one's own.
std::string mask_key(const Node& node) {
  return kept_key(node, "mask") + " " + std::to_string(node.integer(kFusedRelu, 0));
}

struct Primitive {
  dnnl::batch_normalization_forward::primitive_desc desc;
  Desc data, row;
};

Primitive forward_of(Lowering& lowering, const Node& node, const View& x, bool with_relu) {
  Desc data = channels_last_descriptor(x);
  Desc row = vector_descriptor(x.dims[1]);
  Flags flags = Flags::use_scale | Flags::use_shift;
  if (with_relu) flags = flags | Flags::fuse_norm_relu;
  return {{lowering.engine(), dnnl::prop_kind::forward_training, data, data,
           static_cast<float>(node.real("epsilon", 1e-5)), flags, new_attr()},
          data,
          row};
}

Place row_of(Lowering& lowering, int value) {
  return place_of(lowering.read_row_major(value, ElementType::kF32));
}

View channels_last(Lowering& lowering, int value) {
  const Dims& dims = lowering.graph().values[value].dims;
  return lowering.read(value, lowering.real_type(), channels_last_strides(dims));
}

// out = before*momentum + now*(1 - momentum)
void renew(Lowering& lowering, const Node& node, size_t output, Place now) {
  int result = output < node.outputs.size() ? node.outputs[output] : kNone;
  if (result == kNone) return;
  int64_t channels = lowering.graph().values[result].count();
  Place before = row_of(lowering, node.inputs[output + 2]);
  View made = lowering.make(result, ElementType::kF32, {1});
  float keeps = static_cast<float>(node.real("momentum", 0.9));
  Step step{.name = node.name + " running", .kernel = "tenon:running", .always_succeeds = true};
  step.places = {before, now, place_of(made)};
  step.kernel_function = [channels, keeps](const kernels::Context&,
                                           void* const* pointers) -> const char* {
    const float* old = static_cast<const float*>(pointers[0]);
    const float* batch = static_cast<const float*>(pointers[1]);
    float* to = static_cast<float*>(pointers[2]);
    for (int64_t c = 0; c < channels; ++c)
      to[c] = old[c] * keeps + batch[c] * (1.0F - keeps);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

struct Statistics {
  Place mean, variance;
  Place mask;  // of own kernels: the factor and the summand of x
};

Statistics scratch_statistics(Lowering& lowering, const View& x) {
  const int64_t row_bytes = x.dims[1] * 4;
  return {{lowering.scratch(row_bytes), 0},
          {lowering.scratch(row_bytes), 0},
          {lowering.scratch(2 * row_bytes), 0}};
}

// What the forward step of the same input left, where this plan has one.
std::optional<Statistics> kept_statistics(const Lowering& lowering, const Node& node) {
  auto kept = [&](const std::string& key) { return lowering.kept(node.inputs[1], key); };
  const Place* mean = kept(kept_key(node, "mean"));
  if (!mean) return {};
  const bool with_relu = node.integer(kFusedRelu, 0) != 0;
  return Statistics{*mean, *kept(kept_key(node, "variance")),
                    with_relu ? *kept(mask_key(node)) : Place{}};
}

// The forward step; `scale` and `shift` may be any rows when only the statistics are wanted.
Statistics add_forward(Lowering& lowering,
                       const Node& node,
                       const Primitive& forward,
                       const View& x,
                       const View& y,
                       Place scale,
                       Place shift) {
  int64_t row_bytes = x.dims[1] * 4;
  Statistics made{{lowering.scratch(row_bytes), 0}, {lowering.scratch(row_bytes), 0}, {}};
  std::vector<Argument> arguments = {
      {DNNL_ARG_SRC, place_of(x), forward.data}, {DNNL_ARG_DST, place_of(y), forward.data},
      {DNNL_ARG_SCALE, scale, forward.row},      {DNNL_ARG_SHIFT, shift, forward.row},
      {DNNL_ARG_MEAN, made.mean, forward.row},   {DNNL_ARG_VARIANCE, made.variance, forward.row}};
  Desc mask = forward.desc.workspace_desc();
  if (mask.get_size() > 0) {
    made.mask = {lowering.scratch(static_cast<int64_t>(mask.get_size())), 0};
    arguments.push_back({DNNL_ARG_WORKSPACE, made.mask, mask});
  }
  lowering.add_primitive<dnnl::batch_normalization_forward>(
      node.name, forward.desc, std::move(arguments), 6.0 * static_cast<double>(x.count()));
  return made;
}

// A result with one number for each channel, or memory for one that nobody wants.
Place row_result(Lowering& lowering, const Node& node, size_t i, const View& x) {
  bool is_wanted = i < node.outputs.size() && node.outputs[i] != kNone;
  if (!is_wanted) return Place{lowering.scratch(x.dims[1] * 4), 0};
  return place_of(lowering.make(node.outputs[i], ElementType::kF32, {1}));
}

void lower_own_grad(Lowering& lowering, const Node& node, const View& dy, const View& x) {
  bool with_relu = node.integer(kFusedRelu, 0) != 0;
  const std::optional<Statistics> kept = kept_statistics(lowering, node);
  const Statistics given = kept ? *kept : scratch_statistics(lowering, x);
  Place scale = row_of(lowering, node.inputs[2]);
  View dx = lowering.make(node.outputs[0], x.type, channels_last_strides(x.dims));
  add_own_batch_norm_grad(lowering, node, with_relu,
                          {.x = x,
                           .dy = dy,
                           .dx = dx,
                           .rows = {scale, {}, given.mean, given.variance, given.mask},
                           .dscale = row_result(lowering, node, 1, x),
                           .dshift = row_result(lowering, node, 2, x),
                           .has_statistics = kept.has_value()});
}

}  // namespace

void lower_batch_norm_training(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  bool with_relu = node.integer(kFusedRelu, 0) != 0;
  View x = channels_last(lowering, node.inputs[0]);
  View y = lowering.make(node.outputs[0], x.type, channels_last_strides(x.dims));
  Place scale = row_of(lowering, node.inputs[1]), shift = row_of(lowering, node.inputs[2]);
  Statistics made;
  if (takes_own_batch_norm(x)) {
    made = scratch_statistics(lowering, x);
    add_own_batch_norm(lowering, node, with_relu, x, y,
                       {scale, shift, made.mean, made.variance, made.mask});
  } else {
    made =
        add_forward(lowering, node, forward_of(lowering, node, x, with_relu), x, y, scale, shift);
  }
  lowering.keep(node.inputs[0], kept_key(node, "mean"), made.mean);
  lowering.keep(node.inputs[0], kept_key(node, "variance"), made.variance);
  if (with_relu) lowering.keep(node.inputs[0], mask_key(node), made.mask);
  renew(lowering, node, 1, made.mean);
  renew(lowering, node, 2, made.variance);
}

std::string refuse_batch_norm_grad(const Graph& graph, const Node& node) {
  const Value& x = graph.values[node.inputs[1]];
  if (x.type != ElementType::kF32 || x.count() == 0) return "only f32 that is not empty";
  return x.dims.size() < 2 || x.dims.size() > 5 ? "only 2 to 5 axes" : "";
}

void lower_batch_norm_grad(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  bool with_relu = node.integer(kFusedRelu, 0) != 0;
  View dy = channels_last(lowering, node.inputs[0]);
  View x = channels_last(lowering, node.inputs[1]);
  if (takes_own_batch_norm(x)) return lower_own_grad(lowering, node, dy, x);
  Primitive forward = forward_of(lowering, node, x, with_relu);
  Place scale = row_of(lowering, node.inputs[2]);
  Statistics given;
  if (std::optional<Statistics> kept = kept_statistics(lowering, node)) {
    given = *kept;
  } else {
    View nowhere = x;
    nowhere.buffer = lowering.scratch(x.bytes());
    nowhere.offset = 0;
    given = add_forward(lowering, node, forward, x, nowhere, scale, scale);
  }
  View dx = lowering.make(node.outputs[0], x.type, channels_last_strides(x.dims));
  Flags flags = Flags::use_scale | Flags::use_shift;
  if (with_relu) flags = flags | Flags::fuse_norm_relu;
  dnnl::batch_normalization_backward::primitive_desc pd(
      lowering.engine(), dnnl::prop_kind::backward, forward.data, forward.data, forward.data,
      static_cast<float>(node.real("epsilon", 1e-5)), flags, forward.desc, new_attr());
  std::vector<Argument> arguments = {
      {DNNL_ARG_SRC, place_of(x), forward.data},
      {DNNL_ARG_DIFF_DST, place_of(dy), forward.data},
      {DNNL_ARG_DIFF_SRC, place_of(dx), forward.data},
      {DNNL_ARG_SCALE, scale, forward.row},
      {DNNL_ARG_DIFF_SCALE, row_result(lowering, node, 1, x), forward.row},
      {DNNL_ARG_DIFF_SHIFT, row_result(lowering, node, 2, x), forward.row},
      {DNNL_ARG_MEAN, given.mean, forward.row},
      {DNNL_ARG_VARIANCE, given.variance, forward.row}};
  if (with_relu) arguments.push_back({DNNL_ARG_WORKSPACE, given.mask, pd.workspace_desc()});
  lowering.add_primitive<dnnl::batch_normalization_backward>(node.name, pd, std::move(arguments),
                                                             11.0 * static_cast<double>(x.count()));
}

}  // namespace tenon::onednn
