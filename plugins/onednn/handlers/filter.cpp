// SPDX-License-Identifier: Apache-2.0
// y[n] = sum_k w[k] x[stride n + k] as a convolution of many channels over the same memory: 16
// neighbouring results are the channels of one pixel, and the 16 * stride numbers that the next 16
// results are further on those of one pixel of the source. Each of the 16 has the filter at its own
// place in a longer window, which is zero elsewhere.

#include "filter.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "../strided_copy.hpp"
#include "conv_geometry.hpp"
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
  FilterBuilder(Lowering& lowering, const Node& node, const Tail& tail)
      : lowering_(lowering),
        node_(node),
        tail_(tail),
        src_(lowering.view(node.inputs[0])),
        weights_(lowering.view(node.inputs[1])) {
    taps_ = weights_.dims.back();
    n_ = lowering.graph().values[node.outputs[0]].dims.back();
  }

  bool applies() const {
    const Dims& result = lowering_.graph().values[node_.outputs[0]].dims;
    if (!is_signal(src_.dims) || !is_signal(weights_.dims) || !is_signal(result)) return false;
    const Window window =
        find_window(node_, src_.dims, result, Dims(weights_.dims.begin() + 2, weights_.dims.end()));
    auto is_zero = [](int64_t number) { return number == 0; };
    const bool is_plain = std::all_of(window.pad_begin.begin(), window.pad_begin.end(), is_zero) &&
                          std::all_of(window.dilates.begin(), window.dilates.end(), is_zero) &&
                          window.strides.back() * (n_ - 1) + taps_ <= src_.dims.back();
    if (!is_plain || taps_ < kLeastTaps || window.strides.back() > kMostStride) return false;
    if (src_.strides.back() != 1 || !has_known_bias(lowering_, bias()) || tail_.norm != kNone)
      return false;
    return std::all_of(tail_.ops.begin(), tail_.ops.end(),
                       [](const TailOp& op) { return op.eltwise.has_value(); });
  }

  bool build(int64_t stride) {
    width_ = kResults * stride;
    window_ = (stride * (kResults - 1) + taps_ + width_ - 1) / width_;
    pixels_ = (n_ + kResults - 1) / kResults;
    const Dims dims = lowering_.graph().values[tail_.result].dims;
    Fused fused = fuse(lowering_, tail_, {.result_strides = row_major_strides(dims), .dims = dims});
    add_scales(fused);
    auto image = [](ElementType type, int64_t channels, int64_t width) {
      View view{.type = type, .dims = {1, channels, 1, width}};
      view.strides = channels_last_strides(view.dims);
      return channels_last_descriptor(view);
    };
    const bool has_bias = bias() != kNone;
    const dnnl::convolution_forward::primitive_desc pd(
        lowering_.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        image(src_.type, width_, pixels_ + window_ - 1),
        Desc({kResults, width_, 1, window_}, dnnl_type(ElementType::kS8),
             dnnl::memory::format_tag::any),
        has_bias ? numbers(kResults, dnnl::memory::data_type::f32) : Desc(),
        image(fused.dst.type, kResults, pixels_), {1, 1}, {0, 0}, {0, 0}, {0, 0}, fused.attr);
    if (std::string(pd.impl_info_str()).starts_with("ref")) return false;
    emit(pd, stride, std::move(fused));
    return true;
  }

 private:
  int bias() const { return node_.input(2) != kNone ? node_.input(2) : tail_.bias; }

  static Desc numbers(int64_t count, dnnl::memory::data_type type) {
    return {{count}, type, dnnl::memory::dims{1}};
  }

  void add_scales(Fused& fused) {
    auto scale = [&](int id, float value) {
      fused.attr.set_scales_mask(id, 0);
      fused.arguments.push_back({DNNL_ARG_ATTR_SCALES | id, lowering_.floats({value}),
                                 numbers(1, dnnl::memory::data_type::f32)});
    };
    scale(DNNL_ARG_SRC, src_.quant.scale);
    scale(DNNL_ARG_WEIGHTS,
          weights_.channels != nullptr ? weights_.channels->scales[0] : weights_.quant.scale);
    if (src_.quant.zero_point == 0) return;
    fused.attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
    fused.arguments.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC,
                               lowering_.integers({src_.quant.zero_point}),
                               numbers(1, dnnl::memory::data_type::s32)});
  }

  void emit(const dnnl::convolution_forward::primitive_desc& pd, int64_t stride, Fused fused) {
    std::vector<Argument> arguments = std::move(fused.arguments);
    arguments.push_back({DNNL_ARG_SRC, source(), pd.src_desc()});
    const View filters = shifted_filters(stride);
    arguments.push_back({DNNL_ARG_WEIGHTS,
                         lowering_.packed(filters, descriptor(filters), pd.weights_desc()),
                         pd.weights_desc()});
    if (const float* value = known_bias(lowering_, bias())) {
      arguments.push_back(
          {DNNL_ARG_BIAS, lowering_.floats(std::vector<float>(kResults, *value)), pd.bias_desc()});
    }
    // The last pixel may reach past the results.
    fused.dst.buffer =
        lowering_.scratch(pixels_ * kResults * kernels::element_bytes(fused.dst.type));
    arguments.push_back({DNNL_ARG_DST, place_of(fused.dst), pd.dst_desc()});
    const std::string kernel = std::string("filter by ") + pd.impl_info_str();
    lowering_.add_primitive(node_.name, kernel.c_str(), dnnl::convolution_forward(pd),
                            pd.scratchpad_desc(), std::move(arguments),
                            2.0 * static_cast<double>(n_ * taps_));
    lowering_.set_view(tail_.result, fused.dst);
    mark_absorbed(lowering_, tail_);
  }

  // The codes; where pixels reach past them, in memory of their own. What lies behind them there
  // only meets weights of zero.
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
  View shifted_filters(int64_t stride) {
    const int64_t count = kResults * width_ * window_;
    std::shared_ptr<void> data = aligned_bytes(count);
    auto* to = static_cast<int8_t*>(data.get());
    std::fill_n(to, count, int8_t{0});
    const auto* taps = static_cast<const int8_t*>(lowering_.constant_data(weights_));
    for (int64_t result = 0; result < kResults; ++result) {
      for (int64_t k = 0; k < taps_; ++k) {
        const int64_t at = result * stride + k;
        to[(result * width_ + at % width_) * window_ + at / width_] = taps[k];
      }
    }
    return lowering_.make_constant(ElementType::kS8, {kResults, width_, 1, window_}, data);
  }

  Lowering& lowering_;
  const Node& node_;
  const Tail& tail_;
  const View src_;
  const View weights_;
  int64_t taps_ = 0;
  int64_t n_ = 0;       // results
  int64_t width_ = 0;   // numbers of a source's pixel
  int64_t window_ = 0;  // pixels
  int64_t pixels_ = 0;  // of the result
};

}  // namespace

bool lower_filter(Lowering& lowering, int node, const Tail& tail) {
  const Node& conv = lowering.graph().nodes[node];
  FilterBuilder builder(lowering, conv, tail);
  if (!builder.applies()) return false;
  const Dims strides = conv.integers("strides", {1});
  try {
    return builder.build(strides.back());
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace tenon::onednn
