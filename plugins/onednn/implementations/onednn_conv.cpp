// SPDX-License-Identifier: Apache-2.0
// Conv by oneDNN, in f32, bf16 and int8. Activations are channels-last: with weights in a layout of
// oneDNN's choice that is as fast as its blocked layouts on AVX-512, VNNI and AMX, and pooling,
// concatenation and our own kernels then need no padding of channels. Only a first layer of few
// channels reads a layout of oneDNN's choice. oneDNN blocks its products along the width, so an
// image of one column is handed over as one row: channels-last, both are the same bytes.

#include <algorithm>
#include <memory>
#include <utility>

#include "conv_bands.hpp"
#include "conv_geometry.hpp"
#include "conv_kernels.hpp"
#include "conv_site.hpp"
#include "cpu.hpp"
#include "lists.hpp"
#include "lowering/strided_copy.hpp"
#include "operand_scales.hpp"
#include "packed_weights.hpp"
#include "primitive.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Any = dnnl::memory::format_tag;
constexpr int64_t kFewChannels = 4;

struct ConvShape {
  int64_t groups = 1;
  Dims weight_dims;  // [g,] o, i, spatial
  Window window;
  bool is_transposed = false;  // one column, seen as one row
  double flops = 0;
};

bool is_column(const Dims& dims) {
  return dims.size() == 4 && dims[3] == 1;
}

void turn(ConvShape& shape) {
  Window& window = shape.window;
  for (Dims* dims :
       {&shape.weight_dims, &window.strides, &window.dilates, &window.pad_begin, &window.pad_end}) {
    std::swap(*(dims->end() - 1), *(dims->end() - 2));
  }
  shape.is_transposed = true;
}

// repeats: each channel of the source stands there once for each of its filters.
ConvShape conv_shape(const Graph& graph, const Node& node, bool repeats) {
  const Dims& src = graph.values[node.inputs[0]].dims;
  const Dims& weights = graph.values[node.inputs[1]].dims;
  const Dims& dst = graph.values[node.outputs[0]].dims;
  ConvShape shape;
  shape.groups = repeats ? weights[0] : node.integer("group", 1);
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

bool runs_on_columns(const Graph& graph, const Node& node) {
  return is_column(graph.values[node.inputs[0]].dims) &&
         is_column(graph.values[node.inputs[1]].dims) &&
         is_column(graph.values[node.outputs[0]].dims);
}

bool is_depthwise(const Node& node, const View& weights) {
  return weights.dims[1] == 1 && weights.dims[0] == node.integer("group", 1);
}

// oneDNN 3.2 without AVX-512: weights of one channel each and of eight taps are packed as matrices
// of 8 x 8, without the sums that a zero point needs.
bool loses_zero_point(const ConvSite& site) {
  constexpr int64_t kSide = 8;
  const View& weights = site.lowering.view(site.node().inputs[1]);
  return best_level() < kernels::Level::kAvx512 &&
         site.lowering.view(site.node().inputs[0]).quant.zero_point != 0 &&
         is_depthwise(site.node(), weights) && weights.dims[0] % kSide == 0 &&
         weights.count() / weights.dims[0] == kSide;
}

// oneDNN's convolutions of one channel each are exact for unsigned quantized values on every CPU:
// it multiplies them in 32 bits. Over three spatial axes it has no kernel for them, and its product
// of each channel takes four times as long as floats.
bool runs_in_its_int8(const ConvSite& site) {
  if (loses_zero_point(site)) return false;
  const View& src = site.lowering.view(site.node().inputs[0]);
  const bool has_one_channel_each =
      is_depthwise(site.node(), site.lowering.view(site.node().inputs[1]));
  if (has_one_channel_each && src.dims.size() == 5) return false;
  const bool multiplies_in_32_bits =
      site.int8.runs && src.type == ElementType::kU8 && has_one_channel_each;
  return site.int8.is_exact || multiplies_in_32_bits;
}

// oneDNN 3.2 without AVX-512: where the channels of such a kernel do not fill a vector, it reads
// one number of what is added or multiplied behind the sums, and takes none for the other channels.
bool loses_operands(const std::string& kernel, int64_t channels, const Epilogue& epilogue) {
  return kernel.starts_with("jit_uni_int8:") && channels % 8 != 0 &&
         std::any_of(epilogue.ops.begin(), epilogue.ops.end(),
                     [](const EpilogueNode& op) { return !op.eltwise; });
}

// The operands as all forms of the primitive read them.
struct Operands {
  bool int8 = false;
  View src = {}, weights = {};  // as the graph has them, weights perhaps dequantized
  bool any_source = false;      // oneDNN chooses the source's layout
  bool repeats = false;         // the source has each channel once for each of its filters
};

class OperandReader {
 public:
  explicit OperandReader(const ConvSite& site)
      : lowering_(site.lowering), node_(site.node()), int8_(runs_in_its_int8(site)) {}

  Operands read() {
    const int value = node_.inputs[0];
    const View found = lowering_.view(value);
    // oneDNN has no fast kernel for row-major sources; few channels want a layout of their own.
    const bool is_first = found.dims[1] <= kFewChannels && node_.integer("group", 1) == 1;
    const bool is_real = found.type == ElementType::kF32 && !found.is_quantized();
    Operands made{.int8 = int8_, .src = found, .any_source = is_first && (int8_ || is_real)};
    const Dims strides = channels_last_strides(found.dims);
    if (!made.any_source && !int8_) {
      made.src = lowering_.read(value, lowering_.real_type(), strides);
    } else if (!made.any_source && !same_strides(found.dims, found.strides, strides)) {
      made.src = relayout(found, strides);
      lowering_.set_view(value, made.src);  // later readers want it channels-last too
    }
    made.weights = weights();
    const int64_t times = filters_of_each(lowering_.graph(), node_);
    made.repeats = times > 1 && !int8_;
    if (made.repeats) made.src = repeated(made.src, times);
    return made;
  }

 private:
  View relayout(const View& from, const Dims& strides) {
    View to = from;
    to.strides = strides;
    to.offset = 0;
    to.buffer = lowering_.scratch(from.bytes());
    View stored_from = from;
    View stored_to = to;
    stored_from.quant = stored_to.quant = {};
    lowering_.add_copy("reorder " + node_.name, stored_from, stored_to);
    return to;
  }

  // oneDNN has kernels for one filter of each channel; with more it multiplies blocks of channels
  // that are zeros but for one.
  View repeated(const View& from, int64_t times) {
    View to = from;
    to.dims[1] *= times;
    to.strides = channels_last_strides(to.dims);
    to.offset = 0;
    to.buffer = lowering_.scratch(to.bytes());
    View one = from, all = to;
    one.dims = all.dims = {from.count(), times};
    one.strides = {1, 0};
    all.strides = {times, 1};
    lowering_.add_step(strided_copy("channels " + node_.name, one, all));
    return to;
  }

  View weights() {
    const int value = node_.inputs[1];
    const View& found = lowering_.view(value);
    if (int8_) return found;
    if (lowering_.is_constant_view(found))
      return found.is_quantized() ? lowering_.dequantized_constant(found) : found;
    // Computed, in 8 bits perhaps.
    return lowering_.read(value, is_real_type(found.type) ? found.type : lowering_.real_type(),
                          dense_strides_like(found.dims, found.strides));
  }

  Lowering& lowering_;
  const Node& node_;
  bool int8_;
};

class Convolution {
 public:
  Convolution(const ConvSite& site,
              const Operands& operands,
              const Epilogue& epilogue,
              bool is_transposed)
      : lowering_(site.lowering),
        node_(site.node()),
        epilogue_(epilogue),
        shape_(conv_shape(lowering_.graph(), node_, operands.repeats)),
        int8_(operands.int8),
        any_source_(operands.any_source),
        weights_(operands.weights),
        bias_(site.bias(epilogue)) {
    if (is_transposed) turn(shape_);
    src_ = as_seen(operands.src);
  }

  // Why oneDNN does not take it so; empty: `emit` may be called.
  std::string describe(bool takes_plain_loops) {
    const ElementType type = int8_ ? src_.type : lowering_.real_type();
    src_desc_ =
        any_source_ ? Desc(src_.dims, dnnl_type(type), Any::any) : channels_last_descriptor(src_);
    const Desc weights(shape_.weight_dims,
                       dnnl_type(int8_ ? ElementType::kS8 : lowering_.real_type()), Any::any);
    const Dims& dst_dims = lowering_.graph().values[epilogue_.result].dims;
    const View result{.dims = dst_dims, .strides = channels_last_strides(dst_dims)};
    fused_ = fuse(lowering_, epilogue_,
                  {.result_strides = result.strides,
                   .dims = as_seen(result).dims,
                   .channel_axis = 1,
                   .is_transposed = shape_.is_transposed,
                   .sources = {place_of(src_), {lowering_.buffer_of(bias_), 0}}});
    if (!fused_.why_not.empty()) return fused_.why_not;
    if (int8_) describe_scales(src_.quant, weights_.quant, mask_of_scales(), &fused_.attr);
    const bool has_bias = bias_ != kNone || epilogue_.norm != kNone;
    const Desc bias = has_bias ? vector_descriptor(dst_dims[1]) : Desc();
    pd_ = dnnl::convolution_forward::primitive_desc(
        lowering_.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
        src_desc_, weights, bias, channels_last_descriptor(as_seen(fused_.dst)),
        shape_.window.strides, shape_.window.dilates, shape_.window.pad_begin,
        shape_.window.pad_end, fused_.attr, kMayFail);
    skip_wrong_kernels(&pd_);
    if (std::string why = why_no_kernel(pd_, takes_plain_loops); !why.empty()) return why;
    const bool loses = is_depthwise(node_, lowering_.view(node_.inputs[1])) &&
                       loses_operands(pd_.impl_info_str(), dst_dims[1], epilogue_);
    return loses ? "oneDNN's kernel reads one number of an operand behind int8 sums" : "";
  }

  void emit() {
    if (epilogue_.norm != kNone) fold_norm(epilogue_.norm);
    std::vector<Argument> arguments = bind(lowering_, epilogue_, fused_);
    if (int8_) bind_scales(lowering_, src_.quant, weights_.quant, scales_of(weights_), &arguments);
    arguments.push_back({DNNL_ARG_SRC, source_place(pd_.src_desc()), pd_.src_desc()});
    arguments.push_back({DNNL_ARG_WEIGHTS, weights_place(pd_.weights_desc()), pd_.weights_desc()});
    if (bias_ != kNone || folded_bias_.exists()) {
      arguments.push_back({DNNL_ARG_BIAS, bias_place(bias_), pd_.bias_desc()});
    }
    View& dst = fused_.dst;
    if (dst.buffer == kNone) dst.buffer = lowering_.scratch(dst.bytes());
    arguments.push_back({DNNL_ARG_DST, place_of(dst), pd_.dst_desc()});
    const BandedConv bands{node_.name, pd_, fused_.attr, shape_.window, arguments, shape_.flops};
    if (!shares_lines() || !add_bands(lowering_, bands))
      lowering_.add_primitive<dnnl::convolution_forward>(node_.name, pd_, std::move(arguments),
                                                         shape_.flops);
    lowering_.set_view(epilogue_.result, dst);
    mark_absorbed(lowering_, epilogue_);
  }

 private:
  View as_seen(const View& view) const { return shape_.is_transposed ? transposed(view) : view; }

  // conv_bands.hpp has the reason. Seen with 64 and 96 channels; with more taps or stride 1 a line
  // is written too seldom for it to matter, and bands take up to 8 % more there. Operands of the
  // epilogue would need bands of their own.
  bool shares_lines() const {
    constexpr int64_t kFewest = 64, kMost = 96, kMostTaps = 9;
    const Window& window = shape_.window;
    return int8_ && any_source_ && src_.quant.zero_point != 0 && !shape_.is_transposed &&
           weights_.dims[0] >= kFewest && weights_.dims[0] <= kMost &&
           element_count(window.kernel) <= kMostTaps && element_count(window.strides) > 1 &&
           fused_.operands.empty() && std::string_view(pd_.impl_info_str()).starts_with("jit_int8");
  }

  // w' = w * factor, b' = b * factor + shift. Weights of 8 bits keep their numbers.
  void fold_norm(int index) {
    const ChannelNorm norm = channel_norm(lowering_, index);
    std::vector<float> bias(norm.factor.size(), 0.0F);
    if (node_.input(2) != kNone) bias = lowering_.constant_floats(node_.inputs[2]);
    std::shared_ptr<void> shifted =
        aligned_bytes(static_cast<int64_t>(bias.size() * sizeof(float)));
    for (size_t o = 0; o < bias.size(); ++o)
      static_cast<float*>(shifted.get())[o] =
          static_cast<float>(double{bias[o]} * norm.factor[o] + norm.shift[o]);
    folded_bias_ =
        lowering_.make_constant(ElementType::kF32, {static_cast<int64_t>(bias.size())}, shifted);
    if (int8_)
      scale_quantized(norm);
    else
      scale_floats(norm);
  }

  void scale_quantized(const ChannelNorm& norm) {
    auto channels = std::make_shared<ChannelQuant>();
    for (size_t o = 0; o < norm.factor.size(); ++o) {
      const float scale = weights_.channels ? weights_.channels->scales[o] : weights_.quant.scale;
      channels->scales.push_back(static_cast<float>(scale * norm.factor[o]));
    }
    weights_.channels = std::move(channels);
  }

  void scale_floats(const ChannelNorm& norm) {
    std::shared_ptr<void> scaled = aligned_bytes(weights_.bytes());
    const float* from = static_cast<const float*>(lowering_.constant_data(weights_));
    float* to = static_cast<float*>(scaled.get());
    const int64_t per_channel = weights_.count() / weights_.dims[0];
    for (double factor : norm.factor)
      for (int64_t i = 0; i < per_channel; ++i)
        *to++ = static_cast<float>(*from++ * factor);
    weights_ = lowering_.make_constant(ElementType::kF32, weights_.dims, scaled);
  }

  // A BatchNormalization gives each channel its own scale.
  bool has_channel_scales() const {
    return weights_.channels != nullptr || epilogue_.norm != kNone;
  }

  int mask_of_scales() const {
    const int per_channel = shape_.groups > 1 ? 3 : 1;
    return has_channel_scales() ? per_channel : 0;
  }

  Place bias_place(int bias) {
    if (folded_bias_.exists()) return place_of(folded_bias_);
    return place_of(lowering_.read_row_major(bias, ElementType::kF32));
  }

  Place source_place(const Desc& wanted) {
    if (wanted == src_desc_ || wanted == descriptor(src_)) return place_of(src_);
    Place place{lowering_.scratch(static_cast<int64_t>(wanted.get_size())), 0};
    lowering_.add_reorder("reorder source " + node_.name, place_of(src_), descriptor(src_), place,
                          wanted);
    ++lowering_.plan().n_reorders;
    return place;
  }

  Place weights_place(const Desc& wanted) {
    return packed_weights(lowering_, node_.name, as_seen(in_groups(weights_, shape_.groups)),
                          wanted, shape_.groups);
  }

  Lowering& lowering_;
  const Node& node_;
  const Epilogue& epilogue_;
  ConvShape shape_;
  bool int8_;
  bool any_source_;
  View src_;
  View weights_;
  int bias_;
  View folded_bias_;  // exists when a normalization was folded
  Desc src_desc_;
  Fused fused_;
  dnnl::convolution_forward::primitive_desc pd_;
};

struct FormSite {
  const ConvSite& site;
  Operands operands;
};

Offer offer_form(const FormSite& form, const Epilogue& epilogue, bool is_transposed, bool is_last) {
  if (is_transposed && !runs_on_columns(form.site.lowering.graph(), form.site.node()))
    return refused("not an image of one column");
  auto made = std::make_shared<Convolution>(form.site, form.operands, epilogue, is_transposed);
  if (std::string why = made->describe(is_last); !why.empty()) return refused(std::move(why));
  return accepted([made] { made->emit(); });
}

constexpr Implementation<FormSite> kForms[] = {
    {"onednn + epilogue, a column as a row",
     [](const FormSite& form) { return offer_form(form, form.site.epilogue, true, false); }},
    {"onednn + epilogue",
     [](const FormSite& form) { return offer_form(form, form.site.epilogue, false, false); }},
    {"onednn, a column as a row",
     [](const FormSite& form) { return offer_form(form, form.site.alone, true, false); }},
    {"onednn", [](const FormSite& form) { return offer_form(form, form.site.alone, false, true); }},
};
constexpr size_t kWithEpilogue = 2;  // at the front

}  // namespace

Names onednn_conv_form_names() {
  return names_of(kForms);
}

Offer offer_onednn_conv(const ConvSite& site) {
  return accepted([&site] {
    const FormSite form{site, OperandReader(site).read()};
    const std::span<const Implementation<FormSite>> forms(kForms);
    choose<FormSite>(site.lowering, form,
                     forms.subspan(site.epilogue.nodes.empty() ? kWithEpilogue : 0));
  });
}

}  // namespace tenon::onednn
