// SPDX-License-Identifier: Apache-2.0
// A ConvTranspose whose windows lie side by side, as those that double an image's sides in networks
// with an upward path: every pixel becomes a patch of its own, so it is a 1x1 convolution to all
// numbers of the patch, and a copy that puts its rows where they belong.

#include <algorithm>
#include <string>
#include <utility>

#include "conv_geometry.hpp"
#include "conv_site.hpp"
#include "lowering/strided_copy.hpp"
#include "primitive.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
// From as many channels on oneDNN's own way is as fast: tests/bench/onednn/swept.py.
constexpr int64_t kLanes = 16;

class PatchBuilder {
 public:
  explicit PatchBuilder(const ConvSite& site)
      : site_(site),
        lowering_(site.lowering),
        node_(site.node()),
        epilogue_(site.epilogue),
        type_(lowering_.real_type()),
        src_(lowering_.graph().values[node_.inputs[0]].dims),
        kernel_(lowering_.graph().values[node_.inputs[1]].dims) {}

  // Why it is none; empty: `describe` may be asked.
  std::string why_not() const {
    const Dims& result = lowering_.graph().values[node_.outputs[0]].dims;
    if (src_.size() != 4 || node_.integer("group", 1) != 1) return "no plain image";
    const Window window =
        find_window(node_, result, src_, Dims(kernel_.begin() + 2, kernel_.end()));
    for (size_t i = 0; i < 2; ++i) {
      const bool is_side_by_side = window.strides[i] == kernel_[i + 2] && window.dilates[i] == 0 &&
                                   window.pad_begin[i] == 0 &&
                                   result[i + 2] == src_[i + 2] * kernel_[i + 2];
      if (!is_side_by_side) return "windows that do not lie side by side";
    }
    if (n_channels() >= kLanes) return "channels enough to fill vectors";
    const View& weights = lowering_.view(node_.inputs[1]);
    const bool is_f32 = weights.is_quantized() || weights.type == ElementType::kF32;
    if (!lowering_.is_constant_view(weights) || !is_row_major(weights) || !is_f32)
      return "the weights are no constant of f32";
    return refuse_repeated_channels(site_);
  }

  // Why oneDNN has no kernel for it; empty: `build` may be called.
  std::string describe() {
    const Dims dims = lowering_.graph().values[epilogue_.result].dims;
    fused_ =
        fuse(lowering_, epilogue_, {.result_strides = channels_last_strides(dims), .dims = dims});
    if (!fused_.why_not.empty()) return fused_.why_not;
    patches_ = View{.type = fused_.dst.type, .dims = {src_[0], patch(), src_[2], src_[3]}};
    patches_.strides = channels_last_strides(patches_.dims);
    View src{.type = type_, .dims = src_, .strides = channels_last_strides(src_)};
    const Desc bias_desc = bias() == kNone ? Desc() : vector_descriptor(patch());
    pd_ = dnnl::convolution_forward::primitive_desc(
        lowering_.engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        channels_last_descriptor(src),
        Desc({patch(), src_[1], 1, 1}, dnnl_type(type_), dnnl::memory::format_tag::any), bias_desc,
        channels_last_descriptor(patches_), {1, 1}, {0, 0}, {0, 0}, {0, 0}, fused_.attr, kMayFail);
    return why_no_kernel(pd_);
  }

  void build() {
    std::vector<Argument> arguments = bind(lowering_, epilogue_, fused_);
    const View src = lowering_.read(node_.inputs[0], type_, channels_last_strides(src_));
    arguments.push_back({DNNL_ARG_SRC, place_of(src), pd_.src_desc()});
    const View weights = patch_weights();
    arguments.push_back({DNNL_ARG_WEIGHTS,
                         lowering_.packed(weights, descriptor(weights), pd_.weights_desc()),
                         pd_.weights_desc()});
    if (const float* value = known_bias(lowering_, bias()))
      arguments.push_back({DNNL_ARG_BIAS, lowering_.floats(repeated(value)), pd_.bias_desc()});
    patches_.buffer = lowering_.scratch(patches_.bytes());
    arguments.push_back({DNNL_ARG_DST, place_of(patches_), pd_.dst_desc()});
    const std::string kernel = std::string("patches by ") + pd_.impl_info_str();
    lowering_.add_primitive<dnnl::convolution_forward>(
        node_.name, pd_, std::move(arguments),
        2.0 * static_cast<double>(element_count(src_) * patch()), kernel);
    put_in_place();
    mark_absorbed(lowering_, epilogue_);
  }

 private:
  int bias() const { return site_.bias(epilogue_); }
  int64_t n_channels() const { return kernel_[1]; }
  int64_t patch() const { return kernel_[1] * kernel_[2] * kernel_[3]; }

  std::vector<float> repeated(const float* numbers) const {
    return repeated_channels(numbers, n_channels(), kernel_[2] * kernel_[3]);
  }

  // [row, column, channel of the patch; channel of the source]
  View patch_weights() {
    const View& found = lowering_.view(node_.inputs[1]);
    const View weights = found.is_quantized() ? lowering_.dequantized_constant(found) : found;
    const auto* from = static_cast<const float*>(lowering_.constant_data(weights));
    const int64_t n_pixels = kernel_[2] * kernel_[3];
    std::shared_ptr<void> data = aligned_bytes(weights.count() * int64_t{sizeof(float)});
    auto* to = static_cast<float*>(data.get());
    for (int64_t c = 0; c < src_[1]; ++c)
      for (int64_t m = 0; m < n_channels(); ++m)
        for (int64_t pixel = 0; pixel < n_pixels; ++pixel)
          to[(pixel * n_channels() + m) * src_[1] + c] = *from++;
    return lowering_.make_constant(ElementType::kF32, {patch(), src_[1], 1, 1}, data);
  }

  // [image, row, row of the patch, column, a row of the patch]
  void put_in_place() {
    View& dst = fused_.dst;
    if (dst.buffer == kNone) dst.buffer = lowering_.scratch(dst.bytes());
    const int64_t height = src_[2], width = src_[3];
    const int64_t row = kernel_[3] * n_channels();  // of a patch
    View from = patches_, to = dst;
    from.dims = to.dims = {src_[0], height, kernel_[2], width, row};
    from.strides = {height * width * patch(), width * patch(), row, patch(), 1};
    to.strides = {height * width * patch(), width * patch(), width * row, row, 1};
    lowering_.add_step(strided_copy("rows of patches " + node_.name, from, to));
    lowering_.set_view(epilogue_.result, dst);
  }

  const ConvSite& site_;
  Lowering& lowering_;
  const Node& node_;
  const Epilogue& epilogue_;
  const ElementType type_;
  const Dims src_;     // [images, channels, height, width]
  const Dims kernel_;  // [channels of the source, channels, height, width]
  View patches_;       // channels-last: a patch is one pixel's channels
  Fused fused_;
  dnnl::convolution_forward::primitive_desc pd_;
};

}  // namespace

Offer offer_patch_transpose(const ConvSite& site) {
  auto builder = std::make_shared<PatchBuilder>(site);
  std::string why = builder->why_not();
  if (why.empty()) why = builder->describe();
  if (!why.empty()) return refused(std::move(why));
  return accepted([builder] { builder->build(); });
}

}  // namespace tenon::onednn
