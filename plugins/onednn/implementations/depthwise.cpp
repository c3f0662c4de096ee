// SPDX-License-Identifier: Apache-2.0
// Conv of windows over each channel alone, in 8 bits.

#include "kernels/depthwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "cpu.hpp"
#include "gemm_epilogue.hpp"

namespace tenon::onednn {
namespace {

class DepthwiseBuilder {
 public:
  DepthwiseBuilder(Lowering& lowering, int node, const Epilogue& epilogue)
      : lowering_(lowering),
        node_(lowering.graph().nodes[node]),
        index_(node),
        epilogue_(epilogue) {}

  std::string why_not() {
    const Graph& graph = lowering_.graph();
    const Dims& src = graph.values[node_.inputs[0]].dims;
    if (!kernels::has_fast_depthwise(best_context())) return "this CPU has no AVX-512 VNNI";
    if (src.size() > 4 || !is_depthwise(graph, node_))
      return "no window of one or two axes over each channel alone";
    if (!kernels::shares_depthwise(windows()))
      return "no window of 3x3 or 5x5 with strides of 1 or 2";
    if (!is_row_major(lowering_.view(node_.inputs[1]))) return "the weights are not row-major";
    if (!has_known_bias(lowering_, bias_value())) return "the bias is computed";
    if (epilogue_.norm != kNone) return "a BatchNormalization is folded into the weights";
    bool is_bytes = epilogue_.quant && kernels::element_bytes(epilogue_.quant_type) == 1;
    if (!is_bytes) return "the result is not quantized to 8 bits";
    if (!find_ops()) return "what stands in front of the rounding has operands, or is unknown";
    return has_finite_sums() ? "" : "sums in steps of the result that may be infinite";
  }

  std::string why_slower() const {
    const int64_t channels = lowering_.graph().values[node_.inputs[0]].dims[1];
    return fills_blocks(channels) ? "" : "channels that fill too little of blocks of 32";
  }

  void build() {
    const View src = quantized_channels_last(lowering_, node_.inputs[0]);
    View dst{.type = epilogue_.quant_type, .dims = lowering_.graph().values[epilogue_.result].dims};
    dst.strides = channels_last_strides(dst.dims);
    dst.buffer = lowering_.scratch(dst.bytes());
    fill_sizes(src, dst);
    set_bounds();
    std::vector<Place> places = {place_of(src), place_of(dst)};
    for (const View& constant : constants(src))
      places.push_back(place_of(constant));
    Step step{.name = node_.name, .kernel = "tenon:depthwise"};
    const kernels::Windows& w = args_.windows;
    step.flops = 2.0 * static_cast<double>(dst.count() * w.window_height * w.window_width);
    step.bytes = static_cast<double>(src.bytes() + dst.bytes());
    step.places = std::move(places);
    step.always_succeeds = true;
    step.kernel_function = [args = args_, ops = ops_](const kernels::Context& context,
                                                      void* const* pointers) -> const char* {
      kernels::DepthwiseArgs call = args;
      call.src = static_cast<const uint8_t*>(pointers[0]);
      call.dst = static_cast<uint8_t*>(pointers[1]);
      call.weights = static_cast<const int8_t*>(pointers[2]);
      call.scales = static_cast<const float*>(pointers[3]);
      call.bias = static_cast<const float*>(pointers[4]);
      call.outside = static_cast<const uint8_t*>(pointers[5]);
      call.ops = ops.data();
      call.n_ops = static_cast<int>(ops.size());
      kernels::depthwise(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
    lowering_.set_view(epilogue_.result, dst);
    mark_absorbed(lowering_, epilogue_);
  }

 private:
  static kernels::Context best_context() { return kernels::make_context(best_level()); }

  kernels::Windows windows() const { return windows_of(lowering_.graph(), node_); }

  // Bounds alone are bounds of the bytes, and scales then give steps of the result. Other ops are
  // applied to floating-point numbers.
  bool find_ops() {
    if (std::all_of(epilogue_.ops.begin(), epilogue_.ops.end(), is_bounds)) return true;
    GemmStep whole{.node = index_};
    whole.dst_strides = channels_last_strides(lowering_.graph().values[epilogue_.result].dims);
    const GemmEpilogue taken = gemm_epilogue_of(lowering_, whole, epilogue_);
    ops_ = taken.ops;
    if (std::isfinite(taken.low) || std::isfinite(taken.high))
      ops_.push_back(
          {.kind = kernels::EpilogueOp::Kind::kClip, .alpha = taken.low, .beta = taken.high});
    unit_ = taken.unit;
    return is_whole_and_alone(taken, epilogue_);
  }
  // The kernel scales sums and what belongs to the zero point apart from each other.
  bool has_finite_sums() const {
    const int64_t taps = windows().window_height * windows().window_width;
    const double most = static_cast<double>(taps) * 255 * 128;
    const View& weights = lowering_.view(node_.inputs[1]);
    double scale = std::fabs(double{weights.quant.scale});
    if (weights.channels)
      for (float of_channel : weights.channels->scales)
        scale = std::max(scale, std::fabs(double{of_channel}));
    scale *= std::fabs(double{lowering_.view(node_.inputs[0]).quant.scale}) / unit();
    return most * scale < double{std::numeric_limits<float>::max()};
  }
  // oneDNN's blocks have 16 channels. tests/bench/onednn/swept.py --only depthwise: where less of
  // our blocks is filled (8, 16, 24, 40 channels) oneDNN's takes 0.4 to 0.9 of the time of 3x3.
  bool fills_blocks(int64_t channels) const {
    const int64_t all = kernels::depthwise_blocks(channels) * kernels::kDepthwiseBlock;
    return channels * 100 >= all * (windows().window_width == 3 ? 80 : 70);
  }
  double unit() const { return ops_.empty() ? double{epilogue_.quant->scale} : unit_; }

  int bias_value() const { return node_.input(2) != kNone ? node_.input(2) : epilogue_.bias; }

  void fill_sizes(const View& src, const View& dst) {
    args_.images = src.dims[0];
    args_.channels = src.dims[1];
    args_.windows = windows();
    args_.src_flip = src.type == ElementType::kS8 ? 0x80 : 0;
    args_.dst_flip = dst.type == ElementType::kS8 ? 0x80 : 0;
    args_.zero = static_cast<int16_t>(epilogue_.quant->zero_point + args_.dst_flip);
  }

  void set_bounds() {
    if (!ops_.empty()) return;
    auto byte_of = [&](float real) {
      float q = std::nearbyint(real / epilogue_.quant->scale) + static_cast<float>(args_.zero);
      return static_cast<uint8_t>(std::clamp(q, 0.0F, 255.0F));
    };
    for (const EpilogueNode& op : epilogue_.ops) {
      const auto [real_low, real_high] = bounds_of(op);
      const uint8_t low = byte_of(real_low), high = byte_of(real_high);
      // The later bound wins where they do not overlap.
      args_.low = std::clamp(args_.low, low, high);
      args_.high = std::clamp(args_.high, low, high);
    }
  }

  // Packed weights, scales and bias in steps of the result, the pixels outside.
  std::vector<View> constants(const View& src) {
    const View& weights = lowering_.view(node_.inputs[1]);
    const auto* quantized = static_cast<const int8_t*>(lowering_.constant_data(weights));
    const int64_t channels = args_.channels;
    const int64_t padded = kernels::depthwise_blocks(channels) * kernels::kDepthwiseBlock;
    const int64_t taps = args_.windows.window_height * args_.windows.window_width;
    const int64_t weight_bytes =
        kernels::depthwise_blocks(channels) * kernels::depthwise_weight_bytes(args_.windows);
    auto packed = aligned_bytes(weight_bytes);
    auto scales = aligned_bytes(padded * 4), bias = aligned_bytes(padded * 4),
         outside = aligned_bytes(padded);
    kernels::pack_depthwise_weights(quantized, channels, args_.windows,
                                    static_cast<int8_t*>(packed.get()));
    std::fill_n(static_cast<uint8_t*>(outside.get()), padded,
                static_cast<uint8_t>(src.quant.zero_point));
    const float* shift = known_bias(lowering_, bias_value());
    for (int64_t c = 0; c < channels; ++c) {
      int64_t sum = 0;
      for (int64_t i = 0; i < taps; ++i)
        sum += quantized[c * taps + i];
      float w =
          weights.channels ? weights.channels->scales[static_cast<size_t>(c)] : weights.quant.scale;
      double scale = double{src.quant.scale} * double{w} / unit();
      double zero = static_cast<double>(sum * (src.quant.zero_point + args_.src_flip));
      const double real = shift != nullptr ? double{shift[c]} : 0;
      const int64_t place = kernels::depthwise_place(c);
      static_cast<float*>(scales.get())[place] = static_cast<float>(scale);
      static_cast<float*>(bias.get())[place] = static_cast<float>(real / unit() - zero * scale);
    }
    auto constant = [&](ElementType type, int64_t count, std::shared_ptr<void> data) {
      return lowering_.make_constant(type, {count}, std::move(data));
    };
    return {constant(ElementType::kS8, weight_bytes, packed),
            constant(ElementType::kF32, padded, scales), constant(ElementType::kF32, padded, bias),
            constant(ElementType::kU8, padded, outside)};
  }

  Lowering& lowering_;
  const Node& node_;
  int index_;
  const Epilogue& epilogue_;
  kernels::DepthwiseArgs args_;
  std::vector<kernels::EpilogueOp> ops_;
  double unit_ = 1;  // of scales and bias in front of these
};

}  // namespace

Offer offer_depthwise(const ConvSite& site) {
  if (!site.int8.runs) return refused("the operands are not both quantized to 8 bits");
  DepthwiseBuilder builder(site.lowering, site.index, site.epilogue);
  if (std::string why = builder.why_not(); !why.empty()) return refused(std::move(why));
  std::string slow = builder.why_slower();
  return accepted_unless(std::move(slow), [builder]() mutable { builder.build(); });
}

}  // namespace tenon::onednn
