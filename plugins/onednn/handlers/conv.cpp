// SPDX-License-Identifier: Apache-2.0
// Conv in f32, bf16 and int8. Activations are channels-last: with weights in a layout of oneDNN's
// choice that is as fast as its blocked layouts on AVX-512, VNNI and AMX, and pooling,
// concatenation and our own kernels then need no padding of channels. Only a first layer of few
// channels reads a layout of oneDNN's choice. oneDNN blocks its products along the width, so an
// image of one column is handed over as one row: channels-last, both are the same bytes.

#include <algorithm>
#include <cmath>
#include <utility>

#include "../tail.hpp"
#include "code_product.hpp"
#include "conv_geometry.hpp"
#include "depthwise.hpp"
#include "filter.hpp"
#include "handlers.hpp"
#include "packed_weights.hpp"
#include "tile_product.hpp"
#include "winograd.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Any = dnnl::memory::format_tag;
constexpr int64_t kFewChannels = 4;

struct ConvShape {
  int64_t groups = 1;
  Dims weight_dims;  // [g,] o, i, spatial
  Window window;
  bool is_turned = false;  // one column, seen as one row
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
  shape.is_turned = true;
}

ConvShape conv_shape(const Graph& graph, const Node& node) {
  const Dims& src = graph.values[node.inputs[0]].dims;
  const Dims& weights = graph.values[node.inputs[1]].dims;
  const Dims& dst = graph.values[node.outputs[0]].dims;
  ConvShape shape;
  shape.groups = node.integer("group", 1);
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

// Of a node, found once: whether sums are exact may take a look at each of its weights.
struct Int8 {
  bool runs = false;      // integer arithmetic gives what DequantizeLinear, Conv and scales say
  bool is_exact = false;  // oneDNN's too
};

bool is_depthwise(const Node& node, const View& weights) {
  return weights.dims[1] == 1 && weights.dims[0] == node.integer("group", 1);
}

// oneDNN 3.2 without AVX-512: where the channels of such a kernel do not fill a vector, it reads
// one number of what is added or multiplied behind the sums, and takes none for the other channels.
bool loses_operands(const std::string& kernel, int64_t channels, const Tail& tail) {
  return kernel.starts_with("jit_uni_int8:") && channels % 8 != 0 &&
         std::any_of(tail.ops.begin(), tail.ops.end(),
                     [](const TailOp& op) { return !op.eltwise; });
}

Int8 int8_of(const Lowering& lowering, const Node& node) {
  const View& src = lowering.view(node.inputs[0]);
  const View& weights = lowering.view(node.inputs[1]);
  const bool runs =
      holds_codes(src) && src.channels == nullptr && are_code_weights(lowering, weights, 0);
  return {runs, runs && sums_are_exact(lowering, src, weights)};
}

// oneDNN's convolutions of one channel each are exact for unsigned codes on every CPU: it
// multiplies them in 32 bits.
bool runs_in_its_int8(const Lowering& lowering, const Node& node, const Int8& int8) {
  const bool is_unsigned = lowering.view(node.inputs[0]).type == ElementType::kU8;
  return int8.is_exact ||
         (int8.runs && is_unsigned && is_depthwise(node, lowering.view(node.inputs[1])));
}

class ConvBuilder {
 public:
  ConvBuilder(Lowering& lowering, int node, bool is_turned, bool int8)
      : lowering_(lowering),
        node_(lowering.graph().nodes[node]),
        shape_(conv_shape(lowering.graph(), node_)),
        int8_(int8) {
    if (is_turned) turn(shape_);
  }

  // Throws where oneDNN has only its plain kernel, unless that is taken.
  void build(const Tail& tail, bool takes_slow) {
    choose_source();
    choose_weights();
    if (tail.norm != kNone) fold_norm(tail.norm);
    int bias = node_.input(2) != kNone ? node_.input(2) : tail.bias;
    bool has_bias = bias != kNone || folded_bias_.exists();
    Dims dst_dims = lowering_.graph().values[tail.result].dims;
    View result{.dims = dst_dims, .strides = channels_last_strides(dst_dims)};
    Fused fused = fuse(lowering_, tail,
                       {.result_strides = result.strides,
                        .dims = as_seen(result).dims,
                        .channel_axis = 1,
                        .is_turned = shape_.is_turned,
                        .src_buffers = {src_.buffer}});
    if (int8_) add_scales(fused);
    Desc dst = channels_last_descriptor(as_seen(fused.dst));
    Desc bias_desc = !has_bias
                         ? Desc()
                         : Desc({dst_dims[1]}, dnnl::memory::data_type::f32, dnnl::memory::dims{1});
    dnnl::convolution_forward::primitive_desc pd(
        lowering_.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto,
        src_desc_, weights_desc_, bias_desc, dst, shape_.window.strides, shape_.window.dilates,
        shape_.window.pad_begin, shape_.window.pad_end, fused.attr);
    std::string kernel = pd.impl_info_str();
    if (kernel.rfind("ref", 0) == 0 && !takes_slow) throw CompileError("slow kernel");
    if (is_depthwise(node_, lowering_.view(node_.inputs[1])) &&
        loses_operands(kernel, dst_dims[1], tail))
      throw CompileError("operands behind int8 sums");
    emit(pd, tail, std::move(fused), bias);
  }

 private:
  View as_seen(const View& view) const { return shape_.is_turned ? turned(view) : view; }

  void choose_source() {
    int value = node_.inputs[0];
    const View found = lowering_.view(value);
    Dims strides = channels_last_strides(found.dims);
    // oneDNN has no fast kernel for row-major sources; few channels want a layout of their own.
    bool is_first = found.dims[1] <= kFewChannels && shape_.groups == 1;
    bool is_real = found.type == ElementType::kF32 && !found.is_quantized();
    if (is_first && (int8_ || is_real)) {
      src_ = as_seen(found);
      ElementType type = int8_ ? found.type : lowering_.real_type();
      src_desc_ = Desc(src_.dims, dnnl_type(type), Any::any);
      return;
    }
    if (int8_) {
      src_ = found;
      if (!same_strides(found.dims, found.strides, strides)) {
        src_ = relayout(found, strides);
        lowering_.set_view(value, src_);  // later readers want it channels-last too
      }
    } else {
      src_ = lowering_.read(value, lowering_.real_type(), strides);
    }
    src_ = as_seen(src_);
    src_desc_ = channels_last_descriptor(src_);
  }

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

  void choose_weights() {
    int value = node_.inputs[1];
    ElementType type = int8_ ? ElementType::kS8 : lowering_.real_type();
    weights_ = lowering_.view(value);
    weights_desc_ = Desc(shape_.weight_dims, dnnl_type(type), Any::any);
    if (int8_) return;
    bool is_constant = lowering_.is_constant_view(weights_);
    if (is_constant && weights_.is_quantized()) {
      weights_ = lowering_.dequantized_constant(weights_);
    }
    if (!is_constant) {  // computed, in 8 bits perhaps
      bool is_real = weights_.type == ElementType::kF32 || weights_.type == ElementType::kBf16;
      weights_ = lowering_.read(value, is_real ? weights_.type : type,
                                dense_strides_like(weights_.dims, weights_.strides));
    }
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
      scale_codes(norm);
    else
      scale_floats(norm);
  }

  void scale_codes(const ChannelNorm& norm) {
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

  void add_scales(Fused& fused) {
    auto scale = [&](int id, int mask, const std::vector<float>& values) {
      fused.attr.set_scales_mask(id, mask);
      fused.arguments.push_back({DNNL_ARG_ATTR_SCALES | id, lowering_.floats(values),
                                 Desc({static_cast<int64_t>(values.size())},
                                      dnnl::memory::data_type::f32, dnnl::memory::dims{1})});
    };
    scale(DNNL_ARG_SRC, 0, {src_.quant.scale});
    bool per_channel = weights_.channels != nullptr;
    scale(DNNL_ARG_WEIGHTS, per_channel ? (shape_.groups > 1 ? 3 : 1) : 0,
          per_channel ? weights_.channels->scales : std::vector<float>{weights_.quant.scale});
    if (src_.quant.zero_point == 0) return;
    fused.attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
    fused.arguments.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
                               lowering_.integers({src_.quant.zero_point}),
                               Desc({1}, dnnl::memory::data_type::s32, dnnl::memory::dims{1})});
  }

  void emit(const dnnl::convolution_forward::primitive_desc& pd,
            const Tail& tail,
            Fused fused,
            int bias) {
    std::vector<Argument> arguments = std::move(fused.arguments);
    arguments.push_back({DNNL_ARG_SRC, source_place(pd.src_desc()), pd.src_desc()});
    arguments.push_back({DNNL_ARG_WEIGHTS, weights_place(pd.weights_desc()), pd.weights_desc()});
    if (bias != kNone || folded_bias_.exists()) {
      arguments.push_back({DNNL_ARG_BIAS, bias_place(bias), pd.bias_desc()});
    }
    if (fused.dst.buffer == kNone) fused.dst.buffer = lowering_.scratch(fused.dst.bytes());
    arguments.push_back({DNNL_ARG_DST, place_of(fused.dst), pd.dst_desc()});
    lowering_.add_primitive(node_.name, pd.impl_info_str(), dnnl::convolution_forward(pd),
                            pd.scratchpad_desc(), std::move(arguments), shape_.flops);
    lowering_.set_view(tail.result, fused.dst);
    mark_absorbed(lowering_, tail);
  }

  Place bias_place(int bias) {
    if (folded_bias_.exists()) return place_of(folded_bias_);
    const View& view = lowering_.view(bias);
    bool is_codes = view.is_quantized() && lowering_.is_constant_view(view);
    return is_codes ? place_of(lowering_.dequantized_constant(view))
                    : place_of(lowering_.read_row_major(bias, ElementType::kF32));
  }

  Place source_place(const Desc& wanted) {
    if (wanted == src_desc_ || wanted == descriptor(src_)) return place_of(src_);
    Place place{lowering_.scratch(static_cast<int64_t>(wanted.get_size())), 0};
    reorder(place_of(src_), descriptor(src_), place, wanted);
    return place;
  }

  Place weights_place(const Desc& wanted) {
    return packed_weights(lowering_, node_.name, as_seen(in_groups(weights_, shape_.groups)),
                          wanted, shape_.groups);
  }

  void reorder(Place from, const Desc& from_desc, Place to, const Desc& to_desc) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::reorder::primitive_desc pd(lowering_.engine(), from_desc, lowering_.engine(), to_desc,
                                     attr);
    lowering_.add_primitive("reorder source " + node_.name, pd.impl_info_str(), dnnl::reorder(pd),
                            pd.scratchpad_desc(),
                            {{DNNL_ARG_FROM, from, from_desc}, {DNNL_ARG_TO, to, to_desc}}, 0);
    ++lowering_.plan().n_reorders;
  }

  Lowering& lowering_;
  const Node& node_;
  ConvShape shape_;
  bool int8_;
  View src_;
  View weights_;
  View folded_bias_;  // exists when a normalisation was folded
  Desc src_desc_;
  Desc weights_desc_;
};

}  // namespace

std::string refuse_conv(const Graph& graph, const Node& node) {
  const Value& src = graph.values[node.inputs[0]];
  if (src.type != ElementType::kF32) return "only f32 inputs (int8 through DequantizeLinear)";
  if (src.dims.size() < 3 || src.dims.size() > 5) return "only 1, 2 or 3 spatial axes";
  if (src.count() == 0) return "empty tensor";
  return {};
}

void lower_conv(Lowering& lowering, int node) {
  if (lower_winograd_conv(lowering, node)) return;
  Tail tail = find_tail(lowering, node, 1);
  const Node& conv = lowering.graph().nodes[node];
  if (conv.input(2) != kNone && tail.bias != kNone) {
    // The node has a bias of its own: what looked like one is an ordinary operand.
    tail.ops.insert(tail.ops.begin(), TailOp{tail.nodes.front(), std::nullopt,
                                             dnnl::algorithm::binary_add, tail.bias});
    tail.bias = kNone;
  }
  const Int8 int8 = int8_of(lowering, conv);
  if (int8.runs && lower_depthwise(lowering, node, tail)) return;
  if (int8.is_exact && lower_filter(lowering, node, tail)) return;
  if (lower_tile_conv(lowering, node, tail)) return;
  if (int8.runs && !int8.is_exact && lower_code_conv(lowering, node, tail)) return;
  const bool in_its_int8 = runs_in_its_int8(lowering, conv, int8);
  struct Form {
    const Tail& tail;
    bool is_turned;
  };
  const Tail alone = empty_tail(lowering, node);
  std::vector<Form> forms;
  auto add = [&](const Tail& each) {
    if (runs_on_columns(lowering.graph(), conv)) forms.push_back({each, true});
    forms.push_back({each, false});
  };
  add(tail);
  if (!tail.nodes.empty()) add(alone);
  for (size_t i = 0; i < forms.size(); ++i) {
    bool is_last = i + 1 == forms.size();
    try {
      return ConvBuilder(lowering, node, forms[i].is_turned, in_its_int8)
          .build(forms[i].tail, is_last);
    } catch (const dnnl::error&) {
      if (is_last) throw;
    } catch (const CompileError&) {
      if (is_last) throw;
    }
  }
}

}  // namespace tenon::onednn
