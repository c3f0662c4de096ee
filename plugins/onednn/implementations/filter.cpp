// SPDX-License-Identifier: Apache-2.0
// y[n] = sum_k w[k] x[stride n + k] as a convolution of many channels over the same memory: 16
// neighbouring results are the channels of one pixel, and the 16 * stride numbers that the next 16
// results are further on those of one pixel of the source. Each of the 16 has the filter at its own
// place in a longer window, which is zero elsewhere.

#include <algorithm>
#include <string>
#include <utility>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "lowering/strided_copy.hpp"
#include "primitive.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
constexpr int64_t kResults = 16;  // side by side
constexpr int64_t kLeastTaps = 32;
constexpr int64_t kMostStride = 8;

// One batch, one channel, and no axis but the last.
bool is_signal(const Dims& dims) {
  return element_count(dims) == dims.back();
}

class FilterBuilder {
 public:
  FilterBuilder(Lowering& lowering, const Node& node, const Epilogue& epilogue)
      : lowering_(lowering),
        node_(node),
        epilogue_(epilogue),
        src_(lowering.view(node.inputs[0])),
        weights_(lowering.view(node.inputs[1])) {
    taps_ = weights_.dims.back();
    n_ = lowering.graph().values[node.outputs[0]].dims.back();
  }

  // Why it is not such a filter; empty: `describe` may be asked.
  std::string why_not() const {
    const Dims& result = lowering_.graph().values[node_.outputs[0]].dims;
    if (!is_signal(src_.dims) || !is_signal(weights_.dims) || !is_signal(result))
      return "no single signal with a single filter";
    const Window window =
        find_window(node_, src_.dims, result, Dims(weights_.dims.begin() + 2, weights_.dims.end()));
    auto is_zero = [](int64_t number) { return number == 0; };
    const bool is_plain = std::all_of(window.pad_begin.begin(), window.pad_begin.end(), is_zero) &&
                          std::all_of(window.dilates.begin(), window.dilates.end(), is_zero) &&
                          window.strides.back() * (n_ - 1) + taps_ <= src_.dims.back();
    if (!is_plain) return "padded or dilated";
    if (taps_ < kLeastTaps) return "fewer than 32 taps";
    if (window.strides.back() > kMostStride) return "a stride of more than 8";
    if (src_.strides.back() != 1) return "the signal does not lie side by side";
    if (!has_known_bias(lowering_, bias())) return "the bias is computed";
    if (epilogue_.norm != kNone) return "a BatchNormalization is folded into the weights";
    const bool is_alone =
        std::all_of(epilogue_.ops.begin(), epilogue_.ops.end(),
                    [](const EpilogueNode& op) { return op.eltwise.has_value(); });
    return is_alone ? "" : "what follows has operands of its own";
  }

  // Why oneDNN has no kernel for it; empty: `build` may be called.
  std::string describe() {
    stride_ = node_.integers("strides", {1}).back();
    width_ = kResults * stride_;
    window_ = (stride_ * (kResults - 1) + taps_ + width_ - 1) / width_;
    pixels_ = (n_ + kResults - 1) / kResults;
    const Dims dims = lowering_.graph().values[epilogue_.result].dims;
    fused_ = fuse(lowering_, epilogue_, {.result_strides = row_major_strides(dims), .dims = dims});
    fused_.attr.set_scales_mask(DNNL_ARG_SRC, 0);
    fused_.attr.set_scales_mask(DNNL_ARG_WEIGHTS, 0);
    if (src_.quant.zero_point != 0) fused_.attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
    auto image = [](ElementType type, int64_t channels, int64_t width) {
      View view{.type = type, .dims = {1, channels, 1, width}};
      view.strides = channels_last_strides(view.dims);
      return channels_last_descriptor(view);
    };
    const bool has_bias = bias() != kNone;
    pd_ = dnnl::convolution_forward::primitive_desc(
        lowering_.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        image(src_.type, width_, pixels_ + window_ - 1),
        Desc({kResults, width_, 1, window_}, dnnl_type(ElementType::kS8),
             dnnl::memory::format_tag::any),
        has_bias ? numbers(kResults, dnnl::memory::data_type::f32) : Desc(),
        image(fused_.dst.type, kResults, pixels_), {1, 1}, {0, 0}, {0, 0}, {0, 0}, fused_.attr,
        kMayFail);
    return why_no_kernel(pd_);
  }

  void build() {
    std::vector<Argument> arguments = bind(lowering_, epilogue_, fused_);
    add_scales(&arguments);
    arguments.push_back({DNNL_ARG_SRC, source(), pd_.src_desc()});
    const View filters = shifted_filters();
    arguments.push_back({DNNL_ARG_WEIGHTS,
                         lowering_.packed(filters, descriptor(filters), pd_.weights_desc()),
                         pd_.weights_desc()});
    if (const float* value = known_bias(lowering_, bias())) {
      arguments.push_back(
          {DNNL_ARG_BIAS, lowering_.floats(std::vector<float>(kResults, *value)), pd_.bias_desc()});
    }
    // The last pixel may reach past the results.
    fused_.dst.buffer =
        lowering_.scratch(pixels_ * kResults * kernels::element_bytes(fused_.dst.type));
    arguments.push_back({DNNL_ARG_DST, place_of(fused_.dst), pd_.dst_desc()});
    const std::string kernel = std::string("filter by ") + pd_.impl_info_str();
    lowering_.add_primitive(node_.name, kernel.c_str(), dnnl::convolution_forward(pd_),
                            pd_.scratchpad_desc(), std::move(arguments),
                            2.0 * static_cast<double>(n_ * taps_));
    lowering_.set_view(epilogue_.result, fused_.dst);
    mark_absorbed(lowering_, epilogue_);
  }

 private:
  int bias() const { return node_.input(2) != kNone ? node_.input(2) : epilogue_.bias; }

  static Desc numbers(int64_t count, dnnl::memory::data_type type) {
    return {{count}, type, dnnl::memory::dims{1}};
  }

  void add_scales(std::vector<Argument>* arguments) {
    auto scale = [&](int id, float value) {
      arguments->push_back({DNNL_ARG_ATTR_SCALES | id, lowering_.floats({value}),
                            numbers(1, dnnl::memory::data_type::f32)});
    };
    scale(DNNL_ARG_SRC, src_.quant.scale);
    scale(DNNL_ARG_WEIGHTS,
          weights_.channels != nullptr ? weights_.channels->scales[0] : weights_.quant.scale);
    if (src_.quant.zero_point == 0) return;
    arguments->push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
                          lowering_.integers({src_.quant.zero_point}),
                          numbers(1, dnnl::memory::data_type::s32)});
  }

  // The quantized values; where pixels reach past them, in memory of their own. What lies behind
  // them there only meets weights of zero.
  Place source() {
    const int64_t wanted = (pixels_ + window_ - 1) * width_;
    if (src_.dims.back() >= wanted) return place_of(src_);
    View from{.buffer = src_.buffer, .type = src_.type, .dims = {src_.dims.back()}, .strides = {1}};
    from.offset = src_.offset;
    View to = from;
    to.offset = 0;
    to.buffer = lowering_.scratch(wanted);
    lowering_.add_step(strided_copy("pixels " + node_.name, from, to));
    return place_of(to);
  }

  // [result, channel of the source, 1, pixel]
  View shifted_filters() {
    const int64_t count = kResults * width_ * window_;
    std::shared_ptr<void> data = aligned_bytes(count);
    auto* to = static_cast<int8_t*>(data.get());
    std::fill_n(to, count, int8_t{0});
    const auto* taps = static_cast<const int8_t*>(lowering_.constant_data(weights_));
    for (int64_t result = 0; result < kResults; ++result) {
      for (int64_t k = 0; k < taps_; ++k) {
        const int64_t at = result * stride_ + k;
        to[(result * width_ + at % width_) * window_ + at / width_] = taps[k];
      }
    }
    return lowering_.make_constant(ElementType::kS8, {kResults, width_, 1, window_}, data);
  }

  Lowering& lowering_;
  const Node& node_;
  const Epilogue& epilogue_;
  const View src_;
  const View weights_;
  int64_t taps_ = 0;
  int64_t n_ = 0;       // results
  int64_t width_ = 0;   // numbers of a source's pixel
  int64_t window_ = 0;  // pixels
  int64_t pixels_ = 0;  // of the result
  int64_t stride_ = 1;
  Fused fused_;
  dnnl::convolution_forward::primitive_desc pd_;
};

}  // namespace

Offer offer_filter(const ConvSite& site) {
  if (!site.int8.is_exact) return refused("oneDNN's int8 sums are not exact, or it is not in int8");
  auto builder = std::make_shared<FilterBuilder>(site.lowering, site.node(), site.epilogue);
  std::string why = builder->why_not();
  if (why.empty()) why = builder->describe();
  if (!why.empty()) return refused(std::move(why));
  return accepted([builder] { builder->build(); });
}

}  // namespace tenon::onednn
