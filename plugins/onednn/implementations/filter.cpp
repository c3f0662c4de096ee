// SPDX-License-Identifier: Apache-2.0
// y[m, n] = sum_k w[m, k] x[stride n + k - padding] as a convolution of many channels over the same
// memory: R neighbouring results of all filters are the channels of one pixel, and the R * stride
// numbers that the next R results are further on are those of one pixel of the source. Each of the
// R has its filter at its own place in a longer window, which is zero elsewhere: so a number that
// is not finite reaches up to R - 1 results beyond those that see it.

#include <algorithm>
#include <string>
#include <utility>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "lowering/strided_copy.hpp"
#include "operand_scales.hpp"
#include "primitive.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
constexpr int64_t kLanes = 16;  // channels on either side that fill a vector
constexpr int64_t kLeastTaps = 32;
constexpr int64_t kMostStride = 8;  // where results of one filter stand side by side

// [rows, channels, 1, ..., n, ..., 1]: nothing along the other axes.
bool is_row(const Dims& dims, int64_t rows, int64_t channels, size_t axis) {
  return dims[0] == rows && dims[1] == channels &&
         element_count(dims) == rows * channels * dims[axis];
}

class FilterBuilder {
 public:
  explicit FilterBuilder(const ConvSite& site)
      : site_(site),
        lowering_(site.lowering),
        node_(site.node()),
        epilogue_(site.epilogue),
        is_int8_(site.int8.is_exact),
        src_(lowering_.view(node_.inputs[0])),
        weights_(lowering_.view(node_.inputs[1])) {
    const auto longest = std::max_element(weights_.dims.begin() + 2, weights_.dims.end());
    axis_ = static_cast<size_t>(longest - weights_.dims.begin());
    taps_ = *longest;
    n_filters_ = weights_.dims[0];
    n_signals_ = src_.dims[0];
    n_ = lowering_.graph().values[node_.outputs[0]].dims[axis_];
    type_ = is_int8_ ? src_.type : lowering_.real_type();
  }

  // Why it is no such bank of filters; empty: `describe` may be asked.
  std::string why_not() {
    const Dims& result = lowering_.graph().values[node_.outputs[0]].dims;
    if (!is_row(src_.dims, n_signals_, 1, axis_) || !is_row(weights_.dims, n_filters_, 1, axis_) ||
        !is_row(result, n_signals_, n_filters_, axis_))
      return "no signal of one channel";
    const Window window =
        find_window(node_, src_.dims, result, Dims(weights_.dims.begin() + 2, weights_.dims.end()));
    stride_ = window.strides[axis_ - 2];
    padding_ = window.pad_begin[axis_ - 2];
    bool is_plain = padding_ >= 0 && padding_ < taps_;
    for (size_t i = 0; i < window.strides.size(); ++i)
      is_plain = is_plain && window.dilates[i] == 0 && (i + 2 == axis_ || window.pad_begin[i] == 0);
    if (!is_plain) return "dilated, or padded along another axis";
    if (taps_ < kLeastTaps) return "fewer than 32 taps";
    if (!lowering_.is_constant_view(weights_) || !is_row_major(weights_))
      return "the filters are computed";
    if (!weights_.is_quantized() && weights_.type != ElementType::kF32)
      return "filters of another type than f32";
    if (is_int8_ && !is_row_major(src_)) return "the signal does not lie side by side";
    const std::string why = refuse_repeated_channels(site_);
    return why.empty() ? arrange() : why;
  }

  // Why oneDNN has no kernel for it; empty: `build` may be called.
  std::string describe() {
    const Dims dims = lowering_.graph().values[epilogue_.result].dims;
    fused_ =
        fuse(lowering_, epilogue_, {.result_strides = channels_last_strides(dims), .dims = dims});
    if (!fused_.why_not.empty()) return fused_.why_not;
    if (is_int8_)
      describe_scales(src_.quant, weights_.quant, weights_.channels != nullptr ? 1 : 0,
                      &fused_.attr);
    auto image = [&](ElementType type, int64_t channels, int64_t width) {
      View view{.type = type, .dims = {n_signals_, channels, 1, width}};
      view.strides = channels_last_strides(view.dims);
      return channels_last_descriptor(view);
    };
    const bool has_bias = bias() != kNone;
    pd_ = dnnl::convolution_forward::primitive_desc(
        lowering_.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        image(type_, width_, pixels_ + window_ - 1),
        Desc({n_results(), width_, 1, window_}, dnnl_type(is_int8_ ? ElementType::kS8 : type_),
             dnnl::memory::format_tag::any),
        has_bias ? vector_descriptor(n_results()) : Desc(),
        image(fused_.dst.type, n_results(), pixels_), {1, 1}, {0, 0}, {0, 0}, {0, 0}, fused_.attr,
        kMayFail);
    return why_no_kernel(pd_);
  }

  void build() {
    std::vector<Argument> arguments = bind(lowering_, epilogue_, fused_);
    if (is_int8_)
      bind_scales(lowering_, src_.quant, weights_.quant, filter_scales(), &arguments);
    else
      src_ = lowering_.read_row_major(node_.inputs[0], type_);
    arguments.push_back({DNNL_ARG_SRC, source(), pd_.src_desc()});
    const View filters = shifted_filters();
    arguments.push_back({DNNL_ARG_WEIGHTS,
                         lowering_.packed(filters, descriptor(filters), pd_.weights_desc()),
                         pd_.weights_desc()});
    if (const float* value = known_bias(lowering_, bias()))
      arguments.push_back({DNNL_ARG_BIAS, lowering_.floats(repeated(value)), pd_.bias_desc()});
    // The last pixel may reach past the results.
    fused_.dst.buffer = lowering_.scratch(n_signals_ * pixels_ * n_results() *
                                          kernels::element_bytes(fused_.dst.type));
    arguments.push_back({DNNL_ARG_DST, place_of(fused_.dst), pd_.dst_desc()});
    const std::string kernel = std::string("filter by ") + pd_.impl_info_str();
    lowering_.add_primitive<dnnl::convolution_forward>(
        node_.name, pd_, std::move(arguments),
        2.0 * static_cast<double>(n_signals_ * n_filters_ * n_ * taps_), kernel);
    lowering_.set_view(epilogue_.result, fused_.dst);
    mark_absorbed(lowering_, epilogue_);
  }

 private:
  int bias() const { return site_.bias(epilogue_); }
  int64_t n_results() const { return n_filters_ * side_by_side_; }

  // As few results side by side as fill vectors on both sides; more means more zeros.
  std::string arrange() {
    for (side_by_side_ = 1; side_by_side_ < kLanes; side_by_side_ *= 2)
      if (n_results() >= kLanes && side_by_side_ * stride_ >= kLanes) break;
    width_ = side_by_side_ * stride_;
    window_ = (stride_ * (side_by_side_ - 1) + taps_ + width_ - 1) / width_;
    pixels_ = (n_ + side_by_side_ - 1) / side_by_side_;
    if (side_by_side_ > 1 && stride_ > kMostStride) return "a stride of more than 8";
    if (stride_ > taps_) return "filters that do not overlap";
    if (n_signals_ > 1 && n_ % side_by_side_ != 0)
      return "pixels would reach past a signal's results";
    return is_int8_ ? "" : too_many();
  }

  // In floating point oneDNN's own loops run over the filters. Limits: tests/bench/onednn/swept.py.
  std::string too_many() const {
    if (n_filters_ >= kLanes && taps_ < 2 * kLeastTaps) return "so many filters of few taps";
    const bool fills_vectors = n_filters_ >= 4 * kLanes && side_by_side_ > 1;
    return fills_vectors && type_ == ElementType::kF32 ? "filters enough to fill vectors" : "";
  }

  std::vector<float> repeated(const float* numbers) const {
    return repeated_channels(numbers, n_filters_, side_by_side_);
  }

  std::vector<float> filter_scales() const {
    return weights_.channels != nullptr ? repeated(weights_.channels->scales.data())
                                        : scales_of(weights_);
  }

  // The signals; where pixels reach past them, in memory of their own with what stands for 0 there:
  // padding, and numbers that only meet weights of zero but have to be finite.
  Place source() {
    const int64_t length = src_.dims[axis_];
    const int64_t wanted = (pixels_ + window_ - 1) * width_;
    const bool lies_there =
        padding_ == 0 && (n_signals_ == 1 ? length >= wanted : length == wanted);
    if (lies_there) return place_of(src_);
    const int whole = lowering_.scratch(n_signals_ * wanted * kernels::element_bytes(src_.type));
    auto part = [&](int64_t offset, int64_t n) {
      return View{.buffer = whole,
                  .type = src_.type,
                  .dims = {n_signals_, n},
                  .strides = {wanted, 1},
                  .offset = offset};
    };
    const View zero = zeros();
    auto fill = [&](int64_t begin, int64_t end) {
      View from = zero;
      from.dims = {n_signals_, end - begin};
      if (end > begin)
        lowering_.add_step(strided_copy("zeros " + node_.name, from, part(begin, end - begin)));
    };
    const int64_t end = std::min(padding_ + length, wanted);
    View signal{.buffer = src_.buffer, .type = src_.type, .dims = {n_signals_, end - padding_}};
    signal.strides = {length, 1};
    signal.offset = src_.offset;
    fill(0, padding_);
    lowering_.add_step(
        strided_copy("pixels " + node_.name, signal, part(padding_, end - padding_)));
    fill(end, wanted);
    return place_of(part(0, wanted));
  }

  // A number that stands for 0, as often as one likes.
  View zeros() {
    std::shared_ptr<void> zero = aligned_bytes(kernels::element_bytes(src_.type));
    std::fill_n(static_cast<uint8_t*>(zero.get()), kernels::element_bytes(src_.type), uint8_t{0});
    if (is_int8_) *static_cast<uint8_t*>(zero.get()) = static_cast<uint8_t>(src_.quant.zero_point);
    View view = lowering_.make_constant(src_.type, {1}, zero);
    view.strides = {0, 0};
    return view;
  }

  // [result, channel of the source, 1, pixel]
  View shifted_filters() {
    const View filters =
        !is_int8_ && weights_.is_quantized() ? lowering_.dequantized_constant(weights_) : weights_;
    const int64_t n_bytes = kernels::element_bytes(filters.type);
    const int64_t count = n_results() * width_ * window_;
    std::shared_ptr<void> data = aligned_bytes(count * n_bytes);
    auto* to = static_cast<uint8_t*>(data.get());
    std::fill_n(to, count * n_bytes, uint8_t{0});
    const auto* taps = static_cast<const uint8_t*>(lowering_.constant_data(filters));
    for (int64_t result = 0; result < n_results(); ++result) {
      const int64_t filter = result % n_filters_, place = result / n_filters_;
      for (int64_t k = 0; k < taps_; ++k) {
        const int64_t at = place * stride_ + k;
        const int64_t target = (result * width_ + at % width_) * window_ + at / width_;
        std::copy_n(taps + (filter * taps_ + k) * n_bytes, n_bytes, to + target * n_bytes);
      }
    }
    return lowering_.make_constant(filters.type, {n_results(), width_, 1, window_}, data);
  }

  const ConvSite& site_;
  Lowering& lowering_;
  const Node& node_;
  const Epilogue& epilogue_;
  const bool is_int8_;
  View src_;
  const View weights_;
  size_t axis_ = 0;                       // that the signal runs along
  ElementType type_ = ElementType::kF32;  // of the signal, as the primitive reads it
  int64_t n_signals_ = 1;
  int64_t n_filters_ = 0;
  int64_t taps_ = 0;
  int64_t n_ = 0;  // results of a filter
  int64_t stride_ = 1;
  int64_t padding_ = 0;       // in front
  int64_t side_by_side_ = 1;  // results of a filter in one pixel
  int64_t width_ = 0;         // numbers of a source's pixel
  int64_t window_ = 0;        // pixels
  int64_t pixels_ = 0;        // of the result
  Fused fused_;
  dnnl::convolution_forward::primitive_desc pd_;
};

}  // namespace

Offer offer_filter(const ConvSite& site) {
  if (site.int8.runs && !site.int8.is_exact) return refused("oneDNN's int8 sums are not exact");
  auto builder = std::make_shared<FilterBuilder>(site);
  std::string why = builder->why_not();
  if (why.empty()) why = builder->describe();
  if (!why.empty()) return refused(std::move(why));
  return accepted([builder] { builder->build(); });
}

}  // namespace tenon::onednn
