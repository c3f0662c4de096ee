// SPDX-License-Identifier: Apache-2.0
// ConvTranspose in f32, bf16 and int8, channels-last.

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "handlers.hpp"
#include "lists.hpp"
#include "operand_scales.hpp"
#include "packed_weights.hpp"
#include "primitive.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;

// The operands as all forms of the primitive read them.
struct Operands {
  bool int8 = false;
  View src = {};
  View weights = {};  // [g,] o / g, i, spatial
};

// oneDNN 3.2 has no depthwise form with strides in bf16 (the gradient of a depthwise convolution);
// the one for many channels took 28 to 42 ms where f32 takes under 1 (64 images, 96 to 576 channels
// of 16x16 to 4x4, one thread of an EPYC with avx512_bf16).
ElementType type_of_operands(const ConvSite& site) {
  const Node& node = site.node();
  const std::vector<int64_t> strides = node.integers("strides");
  const bool is_strided =
      std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride > 1; });
  const bool is_depthwise =
      node.integer("group", 1) > 1 && node.integer("group", 1) == site.dims(node.inputs[0])[1];
  return is_depthwise && is_strided ? ElementType::kF32 : site.lowering.real_type();
}

View oriented(View weights, int64_t groups) {
  const size_t rank = weights.dims.size();
  weights = in_groups(std::move(weights), groups);
  const size_t out = weights.dims.size() - rank;
  std::swap(weights.dims[out], weights.dims[out + 1]);
  std::swap(weights.strides[out], weights.strides[out + 1]);
  return weights;
}

Operands read_operands(const ConvSite& site) {
  Lowering& lowering = site.lowering;
  const Node& node = site.node();
  Operands made;
  made.src = lowering.read(node.inputs[0], type_of_operands(site),
                           channels_last_strides(site.dims(node.inputs[0])));
  View weights = lowering.read_real(node.inputs[1]);
  if (!is_dense(weights)) weights = lowering.read_row_major(node.inputs[1], weights.type);
  made.weights = oriented(std::move(weights), node.integer("group", 1));
  return made;
}

// As they will be read: the source's quantized values may still have to become channels-last.
Operands planned_quantized(const ConvSite& site) {
  const Node& node = site.node();
  Operands made{.int8 = true, .src = site.lowering.view(node.inputs[0])};
  made.src.strides = channels_last_strides(made.src.dims);
  made.weights = oriented(site.lowering.view(node.inputs[1]), 1);
  return made;
}

Window window_of(const Graph& graph, const Node& node) {
  const Dims& kernel = graph.values[node.inputs[1]].dims;  // i, o / g, spatial
  return find_window(node, graph.values[node.outputs[0]].dims, graph.values[node.inputs[0]].dims,
                     Dims(kernel.begin() + 2, kernel.end()));
}

class Deconvolution {
 public:
  Deconvolution(const ConvSite& site, Operands operands, const Epilogue& epilogue)
      : site_(site), operands_(std::move(operands)), epilogue_(epilogue) {}

  // Why oneDNN does not take it so; empty: `emit` may be called.
  std::string describe() {
    const Lowering& lowering = site_.lowering;
    const Node& node = site_.node();
    const Dims& dst_dims = site_.dims(node.outputs[0]);
    const Window window = window_of(site_.lowering.graph(), site_.node());
    fused_ = fuse(
        lowering, epilogue_,
        {.result_strides = channels_last_strides(dst_dims),
         .dims = dst_dims,
         .channel_axis = 1,
         .sources = {place_of(operands_.src), {lowering.buffer_of(site_.bias(epilogue_)), 0}}});
    if (!fused_.why_not.empty()) return fused_.why_not;
    const ElementType type = operands_.src.type;
    if (operands_.int8) {
      const View& weights = operands_.weights;
      describe_scales(operands_.src.quant, weights.quant, weights.channels != nullptr ? 1 : 0,
                      &fused_.attr);
    } else if (type != lowering.real_type()) {
      if (!epilogue_.nodes.empty()) return "a depthwise one with strides, which is computed in f32";
      if (fused_.dst.buffer == kNone) fused_.dst.type = type;
    }
    const auto make = [&](const Desc& bias) {
      return dnnl::deconvolution_forward::primitive_desc(
          lowering.engine(), dnnl::prop_kind::forward_inference,
          dnnl::algorithm::deconvolution_direct, channels_last_descriptor(operands_.src),
          Desc(operands_.weights.dims, dnnl_type(operands_.int8 ? ElementType::kS8 : type),
               dnnl::memory::format_tag::any),
          bias, channels_last_descriptor(fused_.dst), window.strides, window.dilates,
          window.pad_begin, window.pad_end, fused_.attr, kMayFail);
    };
    const bool has_bias = site_.bias(epilogue_) != kNone;
    pd_ = make(has_bias ? vector_descriptor(dst_dims[1]) : Desc());
    if (std::string why = why_no_kernel(pd_, !operands_.int8); !why.empty()) return why;
    if (!is_plain_behind()) return {};
    if (!epilogue_.nodes.empty()) return "oneDNN has only its plain loops for what follows";
    adds_bias_ = has_bias && !operands_.int8;
    if (adds_bias_) pd_ = make(Desc());
    return {};
  }

  void emit() {
    Lowering& lowering = site_.lowering;
    const Node& node = site_.node();
    std::vector<Argument> arguments = bind(lowering, epilogue_, fused_);
    if (operands_.int8)
      bind_scales(lowering, operands_.src.quant, operands_.weights.quant,
                  scales_of(operands_.weights), &arguments);
    const View src = operands_.int8 ? lowering.read_stored(node.inputs[0], operands_.src.strides,
                                                           operands_.src.type)
                                    : operands_.src;
    arguments.push_back({DNNL_ARG_SRC, place_of(src), pd_.src_desc()});
    const Place weights = packed_weights(lowering, node.name, operands_.weights, pd_.weights_desc(),
                                         node.integer("group", 1));
    arguments.push_back({DNNL_ARG_WEIGHTS, weights, pd_.weights_desc()});
    View row;
    if (const int bias = site_.bias(epilogue_); bias != kNone) {
      row = lowering.read_row_major(bias, ElementType::kF32);
      if (!adds_bias_) arguments.push_back({DNNL_ARG_BIAS, place_of(row), pd_.bias_desc()});
    }
    View& dst = fused_.dst;
    if (dst.buffer == kNone) dst.buffer = lowering.scratch(dst.bytes());
    arguments.push_back({DNNL_ARG_DST, place_of(dst), pd_.dst_desc()});
    const Dims& kernel = site_.dims(node.inputs[1]);
    const double flops = 2.0 * static_cast<double>(element_count(site_.dims(node.inputs[0]))) *
                         static_cast<double>(element_count(kernel) / kernel[0]);
    lowering.add_primitive<dnnl::deconvolution_forward>(node.name, pd_, std::move(arguments),
                                                        flops);
    if (adds_bias_) add_bias(row, dst);
    lowering.set_view(epilogue_.result, dst);
    mark_absorbed(lowering, epilogue_);
  }

 private:
  // oneDNN 3.2: such a primitive is the gradient of a convolution, behind which what follows is
  // computed number by number: of 860,000 numbers a bias takes 3 ms, a Relu 32, and a sum with
  // others 57.
  bool is_plain_behind() const {
    return std::string_view(pd_.impl_info_str()).starts_with("conv:any");
  }

  void add_bias(View row, const View& dst) {
    row.dims = Dims(dst.dims.size(), 1);
    row.dims[1] = dst.dims[1];
    row.strides = channels_last_strides(row.dims);
    const Desc numbers = channels_last_descriptor(dst), bias = channels_last_descriptor(row);
    const dnnl::binary::primitive_desc pd(site_.lowering.engine(), dnnl::algorithm::binary_add,
                                          numbers, bias, numbers, new_attr());
    site_.lowering.add_primitive<dnnl::binary>("bias " + site_.node().name, pd,
                                               {{DNNL_ARG_SRC_0, place_of(dst), numbers},
                                                {DNNL_ARG_SRC_1, place_of(row), bias},
                                                {DNNL_ARG_DST, place_of(dst), numbers}},
                                               static_cast<double>(dst.count()));
  }

  const ConvSite& site_;
  const Operands operands_;
  const Epilogue& epilogue_;
  Fused fused_;
  bool adds_bias_ = false;  // in a pass of its own
  dnnl::deconvolution_forward::primitive_desc pd_;
};

struct FormSite {
  const ConvSite& site;
  Operands operands;
};

Offer offer_form(const FormSite& form, const Epilogue& epilogue) {
  auto made = std::make_shared<Deconvolution>(form.site, form.operands, epilogue);
  if (std::string why = made->describe(); !why.empty()) return refused(std::move(why));
  return accepted([made] { made->emit(); });
}

constexpr Implementation<FormSite> kForms[] = {
    {"onednn + epilogue",
     [](const FormSite& form) { return offer_form(form, form.site.epilogue); }},
    {"onednn", [](const FormSite& form) { return offer_form(form, form.site.alone); }},
};

Offer offer_onednn(const ConvSite& site) {
  return accepted([&site] {
    const FormSite form{site, read_operands(site)};
    const std::span<const Implementation<FormSite>> forms(kForms);
    choose<FormSite>(site.lowering, form, forms.subspan(site.epilogue.nodes.empty() ? 1 : 0));
  });
}

// Whether a number of the result lies behind all windows, or between those of one axis.
bool leaves_numbers_out(const ConvSite& site) {
  const Window window = window_of(site.lowering.graph(), site.node());
  for (size_t i = 0; i < window.kernel.size(); ++i)
    if (window.pad_end[i] < 0 || window.kernel[i] < window.strides[i]) return true;
  return false;
}

// One group: the scales of several would be those of all groups' filters.
Offer offer_int8(const ConvSite& site) {
  if (!site.int8.runs) return refused("the operands are not both quantized to 8 bits");
  if (!site.int8.is_exact) return refused("oneDNN's int8 sums are not exact");
  if (site.node().integer("group", 1) != 1) return refused("several groups");
  if (leaves_numbers_out(site))  // oneDNN 3.2 gives wrong numbers, there and beside
    return refused("windows that do not reach all of the result");
  std::string why;
  for (const Epilogue* epilogue : {&site.epilogue, &site.alone}) {
    auto made = std::make_shared<Deconvolution>(site, planned_quantized(site), *epilogue);
    why = made->describe();
    if (why.empty()) return accepted([made] { made->emit(); });
  }
  return refused(std::move(why));
}

constexpr Implementation<ConvSite> kConvTranspose[] = {
    {"winograd", offer_winograd_transpose},
    {"fold", offer_fold_transpose},
    {"patches", offer_patch_transpose},
    {"int8", offer_int8},
    {"onednn", offer_onednn},
};

}  // namespace

Names conv_transpose_form_names() {
  return names_of(kForms);
}

Names conv_transpose_names() {
  return names_of(kConvTranspose);
}

std::string refuse_conv_transpose(const Graph& graph, const Node& node) {
  if (std::string why = refuse_image(graph.values[node.inputs[0]]); !why.empty()) return why;
  if (graph.values[node.inputs[1]].type != ElementType::kF32) return "only f32 weights";
  const Window window = window_of(graph, node);
  for (size_t i = 0; i < window.kernel.size(); ++i)  // one more window would fit into the rest
    if (window.pad_end[i] <= -window.strides[i]) return "a stride or more behind the last window";
  return {};
}

void lower_conv_transpose(Lowering& lowering, int index) {
  const std::vector<int>& inputs = lowering.graph().nodes[index].inputs;
  read_as_floats(lowering, inputs[0], inputs[1]);
  const Epilogue alone = empty_epilogue(lowering, index);
  ConvSite site{lowering, index, find_epilogue(lowering, index, 1), alone,
                int8_of(lowering, lowering.graph().nodes[index], 1)};
  if (site.node().input(2) != kNone && site.epilogue.bias != kNone) site.epilogue = alone;
  choose<ConvSite>(lowering, site, kConvTranspose);
}

}  // namespace tenon::onednn
