// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool and ReduceMean over all spatial axes, on
// floating-point numbers or directly on quantized integers: a maximum keeps scale and zero point, a
// mean too, and one post-op moves it to other parameters.

#include <algorithm>

#include "choice.hpp"
#include "conv_geometry.hpp"
#include "dilated_max.hpp"
#include "handlers.hpp"
#include "kept.hpp"
#include "kernels/max_pool.h"
#include "kernels/reduce.h"
#include "lists.hpp"
#include "lowering/epilogue.hpp"
#include "max_places.hpp"
#include "product.hpp"
#include "reduce.hpp"

namespace tenon::onednn {
namespace {

using A = dnnl::algorithm;

struct PoolShape {
  A algorithm;
  Window window;
};

// Whether a gradient will ask where the maxima of this value were.
bool is_trained(const Graph& graph, int x) {
  const std::vector<int>& users = graph.values[x].users;
  return std::any_of(users.begin(), users.end(), [&](int user) {
    const Node& node = graph.nodes[user];
    return node.op == "tenon.MaxPoolGrad" && node.inputs[1] == x;
  });
}

// The QuantizeLinear behind a node that can keep the type of its quantized values, or kNone.
int quantize_behind(Lowering& lowering, const Node& node) {
  const View& src = lowering.view(node.inputs[0]);
  const int quantize = only_quantize(lowering, node.outputs[0]);
  const bool has_one_scale = holds_quantized(src) && src.channels == nullptr;
  if (quantize == kNone || !has_one_scale) return kNone;
  const int stored = lowering.graph().nodes[quantize].outputs[0];
  return lowering.graph().values[stored].type == src.type ? quantize : kNone;
}

View channels_last_bytes(Lowering& lowering, int value) {
  const View src = lowering.view(value);
  return lowering.read_stored(value, channels_last_strides(src.dims), src.type);
}

Step max_pool_step(const std::string& name,
                   const Window& window,
                   const View& src,
                   const View& dst) {
  kernels::MaxPoolArgs args{.is_signed = src.type == ElementType::kS8,
                            .images = src.dims[0],
                            .channels = src.dims[1],
                            .height = src.dims[2],
                            .width = src.dims[3],
                            .out_height = dst.dims[2],
                            .out_width = dst.dims[3]};
  for (size_t axis = 0; axis < 2; ++axis) {
    args.kernel[axis] = window.kernel[axis];
    args.stride[axis] = window.strides[axis];
    args.pad[axis] = window.pad_begin[axis];
  }
  Step step{.name = name, .kernel = "tenon:max_pool", .always_succeeds = true};
  step.flops = static_cast<double>(dst.count() * element_count(window.kernel));
  step.bytes = static_cast<double>(src.bytes() + dst.bytes());
  step.places = {place_of(src), place_of(dst)};
  step.kernel_function = [args](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    kernels::MaxPoolArgs call = args;
    call.src = pointers[0];
    call.dst = pointers[1];
    kernels::max_pool(context, call);
    return nullptr;
  };
  return step;
}

// Maxima of quantized values with two spatial axes, by our own kernel: oneDNN's is called for every
// pixel. The largest number has the largest quantized value, so that what reads the result finds
// quantized values again; where a QuantizeLinear of the same scale stands behind, they are its
// result.
void lower_quantized_max(Lowering& lowering, const Node& node, const Window& window) {
  const View src = channels_last_bytes(lowering, node.inputs[0]);
  const int quantize = quantize_behind(lowering, node);
  const bool is_quantized =
      quantize != kNone &&
      is_same(*tensor_quant(lowering, lowering.graph().nodes[quantize]), src.quant);
  const int result = is_quantized ? lowering.graph().nodes[quantize].outputs[0] : node.outputs[0];
  View dst{.type = src.type, .dims = lowering.graph().values[result].dims};
  dst.strides = channels_last_strides(dst.dims);
  dst.buffer = lowering.scratch(dst.bytes());
  if (is_quantized)
    lowering.mark_done(quantize);
  else
    dst.quant = src.quant;
  lowering.add_step(max_pool_step(node.name, window, src, dst));
  lowering.set_view(result, dst);
}

struct PoolSite {
  Lowering& lowering;
  int index;
  PoolShape shape;
  Dims dst_dims;

  const Node& node() const { return lowering.graph().nodes[index]; }
};

// A value of 8-bit integers, as between operators of integers.
bool holds_bytes(const Value& value) {
  return value.type == ElementType::kU8 || value.type == ElementType::kS8;
}

Offer offer_quantized_max(const PoolSite& site) {
  const int value = site.node().inputs[0];
  const View& src = site.lowering.view(value);
  if (site.shape.algorithm != A::pooling_max) return refused("not a maximum");
  const bool is_quantized = holds_quantized(src) && src.channels == nullptr && src.quant.scale > 0;
  if (!is_quantized && !holds_bytes(site.lowering.graph().values[value]))
    return refused("the source is not quantized to 8 bits");
  if (src.dims.size() != 4) return refused("no image of two axes");
  if (site.shape.window.dilates != Dims{0, 0}) return refused("dilated");
  if (is_trained(site.lowering.graph(), site.node().inputs[0]))
    return refused("a gradient asks where the maxima were");
  return accepted([&site] { lower_quantized_max(site.lowering, site.node(), site.shape.window); });
}

// oneDNN 3.2 without AVX-512 packs means by 16 bits with a sign: from 32768 on they would be 0.
bool fits_in_16_bits(const kernels::Quant& from, const kernels::Quant& to) {
  constexpr float kMostSteps = 64;  // of `to` in one of `from`, of which there are 255
  return to.scale > 0 && from.scale <= kMostSteps * to.scale;
}

// A mean of quantized values in steps of others; the zero point comes behind the rounding.
dnnl::post_ops to_other_steps(const kernels::Quant& from, const kernels::Quant& to) {
  const float factor = from.scale / to.scale;
  dnnl::post_ops ops;
  ops.append_eltwise(A::eltwise_linear, factor, -factor * static_cast<float>(from.zero_point));
  if (to.zero_point == 0) return ops;
  ops.append_eltwise(A::eltwise_round, 0, 0);
  ops.append_eltwise(A::eltwise_linear, 1, static_cast<float>(to.zero_point));
  return ops;
}

void lower_by_primitive(const PoolSite& site) {
  Lowering& lowering = site.lowering;
  const Node& node = site.node();
  const PoolShape& shape = site.shape;
  const Dims& dst_dims = site.dst_dims;
  int result = node.outputs[0];
  View src = lowering.view(node.inputs[0]);
  Dims strides = channels_last_strides(src.dims);
  bool is_max = shape.algorithm == A::pooling_max;
  int quantize = quantize_behind(lowering, node);
  bool pads_with_zero = shape.algorithm == A::pooling_avg_include_padding;
  bool stays = quantize != kNone && !(pads_with_zero && src.quant.zero_point != 0);
  dnnl::primitive_attr attr = new_attr();
  View dst{.dims = dst_dims, .strides = channels_last_strides(dst_dims)};
  kernels::Quant target;
  if (stays) {
    target = *tensor_quant(lowering, lowering.graph().nodes[quantize]);
    stays = is_max ? is_same(target, src.quant) : fits_in_16_bits(src.quant, target);
  }
  if (stays) {
    src = channels_last_bytes(lowering, node.inputs[0]);
    dst.type = src.type;
    // Halves go to the even number in front of the zero point, which is even behind it too or odd.
    const bool rounds_alike = is_max || target.zero_point % 2 == 0;
    if (!is_same(target, src.quant) || !rounds_alike)
      attr.set_post_ops(to_other_steps(src.quant, target));
    lowering.mark_done(quantize);
    result = lowering.graph().nodes[quantize].outputs[0];
  } else {
    src = lowering.read(node.inputs[0], lowering.real_type(), strides);
    dst.type = src.type;
  }
  dnnl::memory::desc src_desc = channels_last_descriptor(src);
  dnnl::memory::desc dst_desc = channels_last_descriptor(dst);
  const bool trains = is_max && !stays && is_trained(lowering.graph(), node.inputs[0]);
  dnnl::pooling_forward::primitive_desc pd(
      lowering.engine(),
      trains ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference,
      shape.algorithm, src_desc, dst_desc, shape.window.strides, shape.window.kernel,
      shape.window.dilates, shape.window.pad_begin, shape.window.pad_end, attr);
  dst.buffer = lowering.scratch(dst.bytes());
  std::vector<Argument> arguments = {{DNNL_ARG_SRC, place_of(src), src_desc},
                                     {DNNL_ARG_DST, place_of(dst), dst_desc}};
  if (trains) {
    Place places{lowering.scratch(static_cast<int64_t>(pd.workspace_desc().get_size())), 0};
    arguments.push_back({DNNL_ARG_WORKSPACE, places, pd.workspace_desc()});
    lowering.keep(node.inputs[0], max_pool_key(shape.window), places);
  }
  double flops = static_cast<double>(element_count(dst_dims) * element_count(shape.window.kernel));
  lowering.add_primitive<dnnl::pooling_forward>(node.name, pd, std::move(arguments), flops);
  dst.dims = lowering.graph().values[result].dims;
  if (dst.dims.size() != dst_dims.size()) dst.strides = row_major_strides(dst.dims);
  lowering.set_view(result, dst);
}

void lower_dilated_max(const PoolSite& site) {
  Lowering& lowering = site.lowering;
  const int x = site.node().inputs[0];
  const View src =
      lowering.read(x, ElementType::kF32, channels_last_strides(lowering.graph().values[x].dims));
  const View dst = lowering.make(site.node().outputs[0], ElementType::kF32,
                                 channels_last_strides(site.dst_dims));
  const Window& window = site.shape.window;
  const bool trains = is_trained(lowering.graph(), x);
  const Place taps = trains ? taps_of(lowering, site.dst_dims) : Place{};
  if (trains) lowering.keep(x, dilated_max_key(window), taps);
  add_dilated_max(lowering, site.node().name, window, src, dst, trains ? &taps : nullptr);
}

Offer offer_dilated_max(const PoolSite& site) {
  if (site.shape.algorithm != A::pooling_max || !is_dilated(site.shape.window))
    return refused("no maximum of dilated windows");
  if (quantize_behind(site.lowering, site.node()) != kNone)
    return refused("the result stays quantized");
  return accepted([&site] { lower_dilated_max(site); });
}

Offer offer_onednn(const PoolSite& site) {
  return accepted([&site] { lower_by_primitive(site); });
}

constexpr Implementation<PoolSite> kPool[] = {
    {"int8 maxima", offer_quantized_max},
    {"dilated maxima", offer_dilated_max},
    {"onednn", offer_onednn},
};

}  // namespace

Names pool_names() {
  return names_of(kPool);
}

static std::string key_of(std::string key, const Window& window) {
  for (const Dims* part : {&window.kernel, &window.strides, &window.dilates, &window.pad_begin})
    for (int64_t number : *part)
      key += " " + std::to_string(number);
  return key;
}

std::string max_pool_key(const Window& window) {
  return key_of("max_pool", window);
}

std::string dilated_max_key(const Window& window) {
  return key_of("dilated_max", window);
}

// Of integers there is one kernel.
static std::string refuse_pool_of_bytes(const Graph& graph, const Node& node) {
  const Dims& dims = graph.values[node.inputs[0]].dims;
  if (node.op != "MaxPool" || has_max_places(node) || dims.size() != 4)
    return "of integers only maxima of images of two axes";
  const Dims dilations = node.integers("dilations", Dims(2, 1));
  if (dilations != Dims(2, 1)) return "dilated maxima of integers";
  return graph.values[node.inputs[0]].count() == 0 ? "empty tensor" : "";
}

std::string refuse_pool(const Graph& graph, const Node& node) {
  const Value& x = graph.values[node.inputs[0]];
  std::string why_not = holds_bytes(x) ? refuse_pool_of_bytes(graph, node) : refuse_image(x);
  if (!why_not.empty()) return why_not;
  if (has_max_places(node) && graph.values[node.inputs[0]].count() > INT32_MAX)
    return "indices beyond 32 bits";
  Dims kernel = node.integers("kernel_shape");
  Window window = find_window(node, graph.values[node.inputs[0]].dims,
                              graph.values[node.outputs[0]].dims, kernel);
  Dims dilations = node.integers("dilations", Dims(kernel.size(), 1));
  Dims pads = pads_of(node, kernel.size());
  bool is_average = node.op == "AveragePool";
  for (size_t i = 0; i < kernel.size(); ++i) {
    int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    if (window.pad_begin[i] >= reach || window.pad_end[i] >= reach)
      return "padding over the kernel";
    if (is_average && dilations[i] != 1) return "a dilated mean";
    // With ceil_mode the last window may reach past the padding: it counts fewer elements then.
    bool is_wider = window.pad_end[i] > pads[kernel.size() + i];
    if (is_average && node.integer("count_include_pad", 0) != 0 &&
        node.integer("ceil_mode", 0) != 0 && is_wider) {
      return "a mean with windows past the padding";
    }
  }
  return {};
}

void lower_pool(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (has_max_places(node)) return lower_max_places(lowering, index);
  const Dims& src = lowering.graph().values[node.inputs[0]].dims;
  const Dims& dst = lowering.graph().values[node.outputs[0]].dims;
  A average = node.integer("count_include_pad", 0) != 0 ? A::pooling_avg_include_padding
                                                        : A::pooling_avg_exclude_padding;
  const PoolSite site{lowering,
                      index,
                      {node.op == "MaxPool" ? A::pooling_max : average,
                       find_window(node, src, dst, node.integers("kernel_shape"))},
                      dst};
  choose<PoolSite>(lowering, site, kPool);
}

std::string refuse_global_pool(const Graph& graph, const Node& node) {
  return refuse_image(graph.values[node.inputs[0]]);
}

// One pass of our own kernel, with any quantization on either side.
void lower_global_pool(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  View src = lowering.view(node.inputs[0]);
  if (src.channels != nullptr || !(is_channels_last(src) || is_row_major(src))) {
    src = lowering.read(node.inputs[0], lowering.real_type(), channels_last_strides(src.dims));
  }
  int result = node.outputs[0];
  kernels::ReduceArgs args;
  args.kind = node.op == "GlobalMaxPool" ? kernels::Reduction::kMax : kernels::Reduction::kMean;
  args.src.type = src.type;
  args.src.quant = src.quant;
  args.k = src.count() / (src.dims[0] * src.dims[1]);
  args.outer = is_channels_last(src) ? src.dims[0] : src.dims[0] * src.dims[1];
  args.inner = is_channels_last(src) ? src.dims[1] : 1;
  View dst{.type = ElementType::kF32};
  int quantize = only_quantize(lowering, result);
  if (quantize != kNone) {
    const Node& user = lowering.graph().nodes[quantize];
    args.dst.quant = *tensor_quant(lowering, user);
    lowering.mark_done(quantize);
    result = user.outputs[0];
    dst.type = lowering.graph().values[result].type;
  } else if (lowering.graph().values[result].n_outputs == 0) {
    dst.type = lowering.real_type();
  }
  args.dst.type = dst.type;
  dst.dims = lowering.graph().values[result].dims;
  dst.strides = row_major_strides(dst.dims);
  dst.buffer = lowering.scratch(dst.bytes());
  lowering.add_step(reduce_step(node.name, args, src, dst));
  lowering.set_view(result, dst);
}

}  // namespace tenon::onednn
