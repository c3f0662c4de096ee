// SPDX-License-Identifier: Apache-2.0
// tenon:ConvWeightGrad(x, dy, shape of w): by oneDNN's backward primitive, or as one product of
// matrices, dy^T times what the window sees at each place. (ConvInputGrad is a ConvTranspose:
// expand.cpp.)

#include "conv_grad.hpp"

#include <algorithm>
#include <string_view>

#include "conv_geometry.hpp"
#include "handlers.hpp"
#include "kernels/patches.h"
#include "lists.hpp"
#include "lowering/state_layout.hpp"
#include "packed_weights.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

constexpr int64_t kFewPlaces = 4096;
constexpr int64_t kNarrow = 8;
constexpr int64_t kVeryNarrow = 4;
constexpr int64_t kMostPatchBytes = int64_t{32} << 20;

class WeightGrad {
 public:
  explicit WeightGrad(const ConvGradSite& site)
      : lowering_(site.lowering),
        node_(site.node()),
        result_(site.lowering.graph().values[node_.outputs[0]]),
        groups_(node_.integer("group", 1)) {
    x_ = planned(node_.inputs[0]);
    dy_ = planned(node_.inputs[1]);
    window_ =
        find_window(node_, x_.dims, dy_.dims, Dims(result_.dims.begin() + 2, result_.dims.end()));
    flops_ = 2.0 * static_cast<double>(dy_.count()) *
             static_cast<double>(result_.count() / result_.dims[0]);
  }

  // Measured on AVX-512 with bf16 (oneDNN 3.2): its primitive takes up to twice the time of the
  // product where rows of results are short and it steps over pixels, and a fifth more for windows
  // of one pixel with few places; else it is as fast or faster, as the patches cost it nothing.
  std::string why_not_as_product() const {
    if (groups_ != 1 || x_.dims.size() > 4) return "groups, or more than two spatial axes";
    if (is_pixel()) return {};
    if (!is_same_image() && places() * patch() * kernels::element_bytes(x_.type) > kMostPatchBytes)
      return "patches of more than 32 MiB";
    return {};
  }

  std::string why_slower_as_product() const {
    if (!why_not_by_primitive().empty()) return {};
    const bool pays =
        is_pixel() ? x_.type == ElementType::kBf16 && (is_strided() || places() <= kFewPlaces)
                   : dy_.dims.back() <= (is_strided() ? kNarrow : kVeryNarrow);
    return pays ? "" : "oneDNN's primitive is as fast or faster";
  }

  // oneDNN 3.2 first gathers the pixels that a strided window of one pixel sees, each thread in a
  // room of its own; the rooms are as large as the channels, and vectors write over their ends:
  // sums of 5 channels on 2 threads are wrong four times of five (of 20 and more none was seen).
  std::string why_not_by_primitive() const {
    constexpr int64_t kBlock = 16;
    if (!is_pixel() || !is_strided() || result_.dims[1] % kBlock == 0) return {};
    const Backward pd = describe(true);
    const bool gathers =
        pd.get(true) && std::string_view(pd.impl_info_str()).starts_with("jit_1x1");
    return gathers ? "oneDNN's threads write over each other's gathered pixels" : "";
  }

  // 24 shapes, one thread of a Xeon with AVX-512: with windows of more than 9 pixels the own kernel
  // is 4 to 7.7 times as fast as oneDNN's; of up to 9, 1.04 to 1.7 times in bf16 where an image has
  // more than 16 places, else 0.5 to 1. oneDNN 3.2 has no depthwise form for images of few pixels,
  // and takes 20 times as long (64 images of 2x2 with 960 channels).
  std::string why_slower_as_depthwise() const {
    constexpr int64_t kFewTaps = 9, kFewPlacesOfImage = 16;
    const bool is_small = places() / x_.dims[0] <= kFewPlacesOfImage;
    if (patch() > kFewTaps || (x_.type == ElementType::kBf16 && !is_small)) return {};
    const Backward pd = describe(true);
    const bool has_form =
        pd.get(true) && std::string_view(pd.impl_info_str()).starts_with("jit_dw");
    return has_form ? "oneDNN's primitive is as fast or faster" : "";
  }

  void lower_as_product() {
    read();
    const int64_t channels = result_.dims[0];
    View patches{.type = x_.type, .dims = {places(), patch()}, .strides = {patch(), 1}};
    patches.buffer = is_same_image() ? x_.buffer : add_patches(patches);
    if (is_same_image()) patches.offset = x_.offset;
    View transposed_dy = dy_;
    transposed_dy.dims = {channels, places()};
    transposed_dy.strides = {1, channels};
    View made =
        lowering_.make(node_.outputs[0], ElementType::kF32, channels_last_strides(result_.dims));
    made.dims = {channels, patch()};
    made.strides = {patch(), 1};
    const Desc a(transposed_dy.dims, dnnl_type(x_.type), transposed_dy.strides);
    const Desc b(patches.dims, dnnl_type(x_.type), patches.strides);
    const Desc c(made.dims, dnnl::memory::data_type::f32, made.strides);
    dnnl::matmul::primitive_desc pd(lowering_.engine(), a, b, c, new_attr());
    lowering_.add_primitive<dnnl::matmul>(node_.name, pd,
                                          {{DNNL_ARG_SRC, place_of(transposed_dy), a},
                                           {DNNL_ARG_WEIGHTS, place_of(patches), b},
                                           {DNNL_ARG_DST, place_of(made), c}},
                                          flops_);
  }

  void lower_by_primitive() {
    if (is_slow_in_bf16()) x_.type = dy_.type = ElementType::kF32;
    read();
    View dst{.dims = result_.dims, .strides = kept_strides(lowering_.graph(), node_.outputs[0])};
    const View grouped = in_groups(dst, groups_);
    Desc x_desc = channels_last_descriptor(x_);
    Desc dy_desc = channels_last_descriptor(dy_);
    const Backward pd = describe(false);
    Desc made = pd.diff_weights_desc();
    View packed{.dims = {static_cast<int64_t>(made.get_size() / 4)}, .strides = {1}};
    packed.buffer = lowering_.scratch(packed.bytes());
    lowering_.add_primitive<dnnl::convolution_backward_weights>(
        node_.name, pd,
        {{DNNL_ARG_SRC, place_of(x_), x_desc},
         {DNNL_ARG_DIFF_DST, place_of(dy_), dy_desc},
         {DNNL_ARG_DIFF_WEIGHTS, place_of(packed), made}},
        flops_);
    dst = lowering_.make(node_.outputs[0], ElementType::kF32, dst.strides);
    Desc plain(grouped.dims, dnnl::memory::data_type::f32, grouped.strides);
    lowering_.add_reorder("unpack " + node_.name, place_of(packed), made, place_of(dst), plain);
  }

 private:
  using Backward = dnnl::convolution_backward_weights::primitive_desc;

  Backward describe(bool may_fail) const {
    const View grouped = in_groups(
        View{.dims = result_.dims, .strides = channels_last_strides(result_.dims)}, groups_);
    const Desc x = channels_last_descriptor(x_), dy = channels_last_descriptor(dy_);
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        lowering_.engine(), dnnl::prop_kind::forward_training, kDirect, x,
        Desc(grouped.dims, dnnl_type(x_.type), Tag::any), dy, window_.strides, window_.dilates,
        window_.pad_begin, window_.pad_end, {}, may_fail);
    if (!forward.get(may_fail)) return {};
    return {lowering_.engine(),
            kDirect,
            x,
            Desc(grouped.dims, dnnl::memory::data_type::f32, Tag::any),
            dy,
            window_.strides,
            window_.dilates,
            window_.pad_begin,
            window_.pad_end,
            forward,
            new_attr(),
            may_fail};
  }
  // oneDNN 3.2 has no depthwise form for images of few pixels; its general one takes 11.5 ms in
  // bf16 where it takes 3 in f32 (64 images, 960 channels of 2x2, one thread of an EPYC with
  // avx512_bf16): what is read is converted there.
  bool is_slow_in_bf16() const {
    if (groups_ == 1 || x_.type != ElementType::kBf16) return false;
    const Backward pd = describe(true);
    return pd.get(true) && std::string_view(pd.impl_info_str()).starts_with("jit_bf16:");
  }

  View planned(int value) const {
    const Dims& dims = lowering_.graph().values[value].dims;
    return {.type = lowering_.real_type(), .dims = dims, .strides = channels_last_strides(dims)};
  }
  void read() {
    x_ = lowering_.read(node_.inputs[0], x_.type, x_.strides);
    dy_ = lowering_.read(node_.inputs[1], dy_.type, dy_.strides);
  }

  bool is_strided() const {
    return std::any_of(window_.strides.begin(), window_.strides.end(),
                       [](int64_t stride) { return stride > 1; });
  }
  bool is_pixel() const { return result_.count() == result_.dims[0] * result_.dims[1]; }
  int64_t places() const { return dy_.count() / dy_.dims[1]; }
  int64_t patch() const { return result_.count() / result_.dims[0]; }
  // The window sees each pixel alone, and all of them: the image is the patches.
  bool is_same_image() const {
    bool is_shifted = std::any_of(window_.pad_begin.begin(), window_.pad_begin.end(),
                                  [](int64_t pad) { return pad != 0; });
    return patch() == x_.dims[1] && places() * patch() == x_.count() && !is_shifted;
  }

  int add_patches(const View& patches) {
    kernels::PatchArgs args;
    args.pixel_bytes = x_.dims[1] * kernels::element_bytes(x_.type);
    args.images = x_.dims[0];
    args.windows = windows_of(x_.dims, dy_.dims, window_);
    const int buffer = lowering_.scratch(patches.bytes());
    Step step{.name = "patches " + node_.name, .kernel = "tenon:patches", .always_succeeds = true};
    step.bytes = static_cast<double>(x_.bytes() + patches.bytes());
    step.places = {place_of(x_), {buffer, 0}};
    step.kernel_function = [args](const kernels::Context& context,
                                  void* const* pointers) -> const char* {
      kernels::PatchArgs call = args;
      call.src = pointers[0];
      call.dst = pointers[1];
      kernels::patches(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
    return buffer;
  }

  Lowering& lowering_;
  const Node& node_;
  const Value& result_;
  int64_t groups_;
  Window window_;
  View x_, dy_;
  double flops_ = 0;
};

Offer offer_product(const ConvGradSite& site) {
  WeightGrad grad(site);
  if (std::string why = grad.why_not_as_product(); !why.empty()) return refused(std::move(why));
  return accepted_unless(grad.why_slower_as_product(),
                         [grad]() mutable { grad.lower_as_product(); });
}

Offer offer_depthwise(const ConvGradSite& site) {
  if (std::string why = why_not_depthwise(site); !why.empty()) return refused(std::move(why));
  return accepted_unless(WeightGrad(site).why_slower_as_depthwise(),
                         [site] { lower_depthwise_weight_grad(site); });
}

Offer offer_primitive(const ConvGradSite& site) {
  WeightGrad grad(site);
  if (std::string why = grad.why_not_by_primitive(); !why.empty()) return refused(std::move(why));
  return accepted([grad]() mutable { grad.lower_by_primitive(); });
}

constexpr Implementation<ConvGradSite> kConvWeightGrad[] = {
    {"winograd", offer_winograd_weight_grad, kRival},
    {"depthwise", offer_depthwise, kRival},
    {"product of patches", offer_product, kRival},
    {"onednn", offer_primitive, kRival},
};

}  // namespace

Names conv_weight_grad_names() {
  return names_of(kConvWeightGrad);
}

std::string refuse_conv_weight_grad(const Graph& graph, const Node& node) {
  for (size_t i : {0, 1})
    if (std::string why = refuse_image(graph.values[node.inputs[i]]); !why.empty()) return why;
  return {};
}

void lower_conv_weight_grad(Lowering& lowering, int index) {
  choose<ConvGradSite>(lowering, {lowering, index}, kConvWeightGrad);
}

}  // namespace tenon::onednn
