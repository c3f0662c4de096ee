// SPDX-License-Identifier: Apache-2.0
// Conv of windows over each channel alone, in the plan's floating-point type.

#include "kernels/float_depthwise.h"

#include <memory>
#include <utility>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "cpu.hpp"
#include "gemm_epilogue.hpp"
#include "tile_step.hpp"

namespace tenon::onednn {
namespace {

class FloatDepthwise {
 public:
  explicit FloatDepthwise(const ConvSite& site)
      : lowering_(site.lowering),
        node_(site.node()),
        epilogue_(site.epilogue),
        type_(site.lowering.real_type()) {
    step_.node = site.index;
    step_.bias = node_.input(2);
    step_.weights.view = lowering_.view(node_.inputs[1]);
  }

  std::string why_not() {
    const View& weights = step_.weights.view;
    if (!is_depthwise(lowering_.graph(), node_) || dims(node_.inputs[0]).size() > 4)
      return "no window of one or two axes over each channel alone";
    if (!lowering_.is_constant_view(weights) || !is_row_major(weights))
      return "the weights are not known, or not row-major";
    if (!has_known_bias(lowering_, step_.bias)) return "the bias is computed";
    if (epilogue_.quant) return "the result is quantized";
    if (lowering_.stored_type(epilogue_.result) != type_)
      return "the result is kept in another type";
    step_.args.n = dims(epilogue_.result)[1];
    step_.dst_strides = channels_last_strides(dims(epilogue_.result));
    taken_ = gemm_epilogue_of(lowering_, step_, epilogue_);
    return is_whole_and_alone(taken_, epilogue_) ? "" : "what follows has operands, or is unknown";
  }

  // In fp32 oneDNN's kernel is as fast; other windows read each pixel for each result, and fewer
  // channels do not fill a register. In bf16, of 70 shapes of 16 to 960 channels, 1.59x as fast as
  // oneDNN's, the slowest 0.9x (tests/bench/README.md).
  std::string why_slower() const {
    if (type_ != ElementType::kBf16) return "fp32";
    if (best_level() != kernels::Level::kAvx512) return "no AVX-512";
    if (!kernels::shares_float_depthwise(windows_of(lowering_.graph(), node_)))
      return "no window of 3x3, 5x5 or 7x7 with strides of 1 or 2";
    return step_.args.n < kernels::kFloatDepthwiseBlock ? "fewer than 16 channels" : "";
  }

  void build() {
    const View src =
        lowering_.read(node_.inputs[0], type_, channels_last_strides(dims(node_.inputs[0])));
    View dst{.type = type_, .dims = dims(epilogue_.result), .strides = step_.dst_strides};
    kernels::FloatDepthwiseArgs args;
    args.type = type_;
    args.images = src.dims[0];
    args.channels = src.dims[1];
    args.windows = windows_of(lowering_.graph(), node_);
    args.low = taken_.low;
    args.high = taken_.high;
    const int64_t padded = kernels::float_depthwise_channels(args.channels);
    if (epilogue_.norm != kNone) step_.norm = channel_norm(lowering_, epilogue_.norm);
    step_.weights.view = real_weights(lowering_, step_.weights.view);
    const EpilogueRows rows = epilogue_rows(lowering_, step_, taken_, padded);
    const View weights = packed(args, rows.scales, padded);
    const View outside = lowering_.make_constant(
        type_, {args.channels}, aligned_bytes(args.channels * kernels::element_bytes(type_)));
    dst.buffer = lowering_.scratch(dst.bytes());
    Step step{.name = node_.name, .kernel = "tenon:float_depthwise"};
    const kernels::Windows& w = args.windows;
    step.flops = 2.0 * static_cast<double>(dst.count() * w.window_height * w.window_width);
    step.bytes = static_cast<double>(src.bytes() + dst.bytes());
    step.places = {place_of(src), place_of(dst), place_of(weights), place_of(rows.bias),
                   place_of(outside)};
    step.always_succeeds = true;
    step.kernel_function = [args, ops = taken_.ops](const kernels::Context& context,
                                                    void* const* pointers) -> const char* {
      kernels::FloatDepthwiseArgs call = args;
      call.src = pointers[0];
      call.dst = pointers[1];
      call.weights = static_cast<const float*>(pointers[2]);
      call.bias = static_cast<const float*>(pointers[3]);
      call.outside = pointers[4];
      call.ops = ops.data();
      call.n_ops = static_cast<int>(ops.size());
      kernels::float_depthwise(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
    lowering_.set_view(epilogue_.result, dst);
    mark_absorbed(lowering_, epilogue_);
  }

 private:
  const Dims& dims(int value) const { return lowering_.graph().values[value].dims; }

  // [taps, padded channels], each channel times its scale.
  View packed(const kernels::FloatDepthwiseArgs& args, const View& scales, int64_t padded) {
    const int64_t taps = args.windows.window_height * args.windows.window_width;
    const auto* from = static_cast<const float*>(lowering_.constant_data(step_.weights.view));
    const auto* scale = static_cast<const float*>(lowering_.constant_data(scales));
    std::shared_ptr<void> made = aligned_bytes(taps * padded * int64_t{sizeof(float)});
    auto* const to = static_cast<float*>(made.get());
    for (int64_t c = 0; c < args.channels; ++c)
      for (int64_t tap = 0; tap < taps; ++tap)
        to[tap * padded + c] = from[c * taps + tap] * scale[c];
    return lowering_.make_constant(ElementType::kF32, {taps, padded}, std::move(made));
  }

  Lowering& lowering_;
  const Node& node_;
  const Epilogue& epilogue_;
  ElementType type_;
  GemmStep step_ = {};
  GemmEpilogue taken_ = {};
};

}  // namespace

Offer offer_float_depthwise(const ConvSite& site) {
  if (site.int8.runs) return refused("the operands are quantized to 8 bits");
  FloatDepthwise builder(site);
  if (std::string why = builder.why_not(); !why.empty()) return refused(std::move(why));
  std::string slow = builder.why_slower();
  return accepted_unless(std::move(slow), [builder]() mutable { builder.build(); });
}

}  // namespace tenon::onednn
