// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 with stride 1, and their gradients, by kernels/winograd.h.

#include "kernels/winograd.h"

#include <algorithm>
#include <optional>

#include "conv_geometry.hpp"
#include "conv_grad.hpp"
#include "conv_site.hpp"
#include "cpu.hpp"
#include "float_step.hpp"
#include "lowering/state_layout.hpp"
#include "product.hpp"

namespace tenon::onednn {
namespace {

using kernels::Winograd;
using kernels::WinogradShape;
using kernels::WinogradWeights;

// What is packed again in each run is worth it for large layers only.
constexpr int64_t kLeastChannels = 64;
constexpr int64_t kLeastTiles = 256;
constexpr int64_t kLeastExtent = 4;  // of an image: half of a smaller one's tiles is padding

// Weights packed once. In a network they come from memory, and are 16/9 as large: small images must
// have many channels to be worth that, and few tiles at odd sides, which are half empty.
constexpr int64_t kLeastKeptChannels = 32;
constexpr int64_t kManyPixels = 450;  // of all images: for these any channels will do
constexpr int64_t kFewPixels = 144;
constexpr int64_t kManyChannels = 192;
constexpr double kLeastShare = 0.9;  // of the tiles' area that is image
// Where the epilogue is a step of its own, the sums must save more than it costs.
constexpr int64_t kLeastInAlone = 128;

// src and dst: of the convolution, [n, channels, height, width].
std::optional<WinogradShape> shape_of(const Node& node,
                                      const Dims& src,
                                      const Dims& dst,
                                      const Dims& weights) {
  if (src.size() != 4 || node.integer("group", 1) != 1) return std::nullopt;
  const Window window = find_window(node, src, dst, Dims(weights.begin() + 2, weights.end()));
  bool is_plain =
      window.kernel == Dims{3, 3} && window.strides == Dims{1, 1} && window.dilates == Dims{0, 0};
  for (const Dims* pads : {&window.pad_begin, &window.pad_end}) {
    for (int64_t pad : *pads)
      is_plain = is_plain && pad >= 0 && pad <= 2;
  }
  if (!is_plain) return std::nullopt;
  return WinogradShape{
      src[0], src[2], src[3], dst[2], dst[3], window.pad_begin[0], window.pad_begin[1],
      src[1], dst[1]};
}

// Measured by bench_onednn_winograd.
std::string why_too_small(const WinogradShape& s) {
  if (std::min(s.in, s.out) < kLeastChannels) return "fewer than 64 channels";
  if (s.tiles() < kLeastTiles) return "fewer than 256 tiles of 2x2";
  if (std::min(s.out_height, s.out_width) < kLeastExtent) return "an image of less than 4 pixels";
  return {};
}

// The same for weights that are packed once; measured layer by layer in ten networks at batch 1
// (`tenon bench --layers`), and by bench_onednn_winograd with `kept`.
std::string why_too_small_kept(const WinogradShape& s) {
  const int64_t channels = std::min(s.in, s.out);
  if (channels < kLeastKeptChannels) return "fewer than 32 channels";
  const int64_t pixels = s.images * s.out_height * s.out_width;
  if (pixels >= kManyPixels) return {};
  if (pixels < kFewPixels || channels < kManyChannels) return "a small image";
  const double share = static_cast<double>(pixels) / static_cast<double>(4 * s.tiles());
  return share < kLeastShare ? "a small image with odd sides" : "";
}

std::string why_refused(const Lowering& lowering,
                        const std::optional<WinogradShape>& shape,
                        bool is_kept) {
  const Use use = lowering.options().winograd;
  const ElementType type = lowering.real_type();
  if (!shape) return "no window of 3x3 with stride 1 over one group";
  if (use == Use::kOff) return "winograd=off";
  if (use == Use::kAuto && is_kept && type != ElementType::kF32)
    return "winograd=auto takes constant weights in fp32 only";
  if (use == Use::kAuto && !is_kept && type != ElementType::kBf16)
    return "winograd=auto takes computed weights in bf16 only";
  if (!Winograd::is_fast(type, best_level())) return "not fast on this CPU";
  return shape->in % 16 != 0 || shape->out % 16 != 0 ? "channels that are no multiple of 16" : "";
}

// Of many channels and filters all products on tiles take less time, 0.72 to 0.99 of it over 18
// shapes (onednn/convolutions.py split windows), and are more accurate.
bool are_tiles_faster(const Lowering& lowering, const WinogradShape& s) {
  constexpr int64_t kTileFilters = 256, kTileChannels = 96, kTaps = 9;
  const int64_t m = s.images * s.out_height * s.out_width;
  return s.out >= kTileFilters && s.in >= kTileChannels && s.in % 32 == 0 &&
         is_faster_on_tiles(lowering, m, s.out, s.in * kTaps);
}

std::string why_slower(const Lowering& lowering, const WinogradShape& shape, bool is_kept) {
  if (!is_kept) return why_too_small(shape);
  if (lowering.real_type() == ElementType::kF32 && are_tiles_faster(lowering, shape))
    return "all products on tiles are faster";
  return why_too_small_kept(shape);
}

// The convolution whose result is the gradient of this one's source.
WinogradShape backward(const WinogradShape& s) {
  return {s.images,      s.out_height,   s.out_width, s.height, s.width,
          2 - s.pad_top, 2 - s.pad_left, s.out,       s.in};
}

// An epilogue as the kernel computes it in its own last step.
struct WinogradEpilogue {
  int add = kNone;
  int add_node = kNone;
  bool relu = false;
};

std::optional<WinogradEpilogue> winograd_epilogue(const Lowering& lowering,
                                                  const Epilogue& epilogue) {
  if (epilogue.quant || epilogue.ops.size() > 2) return std::nullopt;
  WinogradEpilogue made;
  for (const EpilogueNode& op : epilogue.ops) {
    if (made.relu) return std::nullopt;
    if (op.eltwise) {
      const bool is_relu = op.eltwise->algorithm == dnnl::algorithm::eltwise_relu;
      if (!is_relu || op.eltwise->alpha != 0) return std::nullopt;
      made.relu = true;
      continue;
    }
    const View& other = lowering.view(op.other);
    const bool is_sum = op.binary == dnnl::algorithm::binary_add && made.add == kNone &&
                        other.dims == lowering.graph().values[epilogue.result].dims &&
                        !other.is_quantized();
    if (!is_sum) return std::nullopt;
    made.add = op.other;
    made.add_node = op.node;
  }
  return made;
}

double flops_of(const WinogradShape& s) {  // of the sum, so that rates can be compared
  return 18.0 * static_cast<double>(s.images * s.out_height * s.out_width * s.in * s.out);
}

class Convolution {
 public:
  // is_transposed: weights are [in, out, 3, 3], their taps reversed.
  Convolution(const ConvSite& site, const WinogradShape& shape, bool is_transposed)
      : lowering_(site.lowering),
        node_(site.node()),
        shape_(shape),
        is_transposed_(is_transposed),
        kernel_(std::make_shared<const Winograd>(
            shape, lowering_.real_type(), lowering_.options().threads)) {}

  void lower(const Epilogue& epilogue, const WinogradEpilogue& taken) {
    add_step(epilogue, taken);
    mark_absorbed(lowering_, epilogue);
  }

 private:
  View image(int value) {
    return lowering_.read(value, lowering_.real_type(),
                          channels_last_strides(lowering_.graph().values[value].dims));
  }

  // Once, when the first plan of the model is made.
  Place pack_constant(const View& weights, const WinogradWeights& strides) {
    const int64_t bytes = kernel_->packed_bytes();
    const auto* numbers = static_cast<const float*>(lowering_.constant_data(weights));
    std::string form = lowering_.options().bf16 ? "winograd bf16" : "winograd fp32";
    if (is_transposed_) form += " transposed";
    for (int64_t number : {strides.out, strides.in, bytes})
      form += " " + std::to_string(number);
    std::shared_ptr<const void> data =
        lowering_.weights().made(numbers, weights.bytes(), form, bytes, [&](void* to) {
          kernel_->pack(kernels::make_context(best_level()), numbers, strides, is_transposed_, to);
        });
    return place_of(lowering_.make_constant(ElementType::kF32, {bytes / 4}, data));
  }

  Place pack() {
    const int value = node_.inputs[1];
    const Dims dims = lowering_.view(value).dims;
    const Dims last = channels_last_strides(dims);
    const bool is_last = same_strides(dims, lowering_.view(value).strides, last);
    const View weights = is_last ? lowering_.read(value, ElementType::kF32, last)
                                 : lowering_.read_row_major(value, ElementType::kF32);
    WinogradWeights strides{weights.strides[0], weights.strides[1], weights.strides[3]};
    if (is_transposed_) std::swap(strides.out, strides.in);
    if (lowering_.is_constant_view(weights)) return pack_constant(weights, strides);
    const Place packed{lowering_.scratch(kernel_->packed_bytes()), 0};
    Step step{
        .name = "pack " + node_.name, .kernel = "tenon:winograd pack", .always_succeeds = true};
    step.bytes = static_cast<double>(weights.bytes() + kernel_->packed_bytes());
    step.places = {place_of(weights), packed};
    step.kernel_function = [kernel = kernel_, strides, is_flipped = is_transposed_](
                               const kernels::Context& context,
                               void* const* pointers) -> const char* {
      kernel->pack(context, static_cast<const float*>(pointers[0]), strides, is_flipped,
                   pointers[1]);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
    return packed;
  }

  // Memory for the result: that of what is added, where nothing else needs it.
  View result(const Epilogue& epilogue,
              const WinogradEpilogue& taken,
              const View& add,
              std::initializer_list<Place> also_read) {
    const Dims& dims = lowering_.graph().values[epilogue.result].dims;
    View dst{.type = lowering_.real_type(), .dims = dims, .strides = channels_last_strides(dims)};
    const bool is_free =
        add.exists() && lowering_.may_overwrite(add, dst, taken.add_node, also_read);
    dst.buffer = is_free ? add.buffer : lowering_.scratch(dst.bytes());
    return dst;
  }

  void add_step(const Epilogue& epilogue, const WinogradEpilogue& taken) {
    const View src = image(node_.inputs[0]);
    const View add = taken.add == kNone ? View{} : image(taken.add);
    const int bias = node_.input(2) != kNone ? node_.input(2) : epilogue.bias;
    Place biases;
    if (bias != kNone) biases = place_of(lowering_.read_row_major(bias, ElementType::kF32));
    const Place packed = pack();
    const View dst = result(epilogue, taken, add, {place_of(src), biases, packed});
    const Place added = add.exists() ? place_of(add) : Place{};
    Step step{.name = node_.name,
              .kernel = "tenon:winograd",
              .flops = flops_of(shape_),
              .always_succeeds = true};
    const int64_t add_bytes = add.exists() ? add.bytes() : 0;
    step.bytes =
        static_cast<double>(src.bytes() + add_bytes + dst.bytes() + kernel_->packed_bytes());
    const Place scratch{lowering_.scratch(kernel_->convolve_bytes()), 0};
    step.places = {place_of(src), packed, biases, added, place_of(dst), scratch};
    step.kernel_function = [kernel = kernel_, relu = taken.relu](
                               const kernels::Context& context,
                               void* const* pointers) -> const char* {
      kernel->convolve(context,
                       {.src = pointers[0],
                        .packed = pointers[1],
                        .bias = static_cast<const float*>(pointers[2]),
                        .add = pointers[3],
                        .relu = relu,
                        .dst = pointers[4]},
                       pointers[5]);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
    lowering_.set_view(epilogue.result, dst);
  }

  Lowering& lowering_;
  const Node& node_;
  WinogradShape shape_;
  bool is_transposed_;
  std::shared_ptr<const Winograd> kernel_;
};

Offer offer(const ConvSite& site, const std::optional<WinogradShape>& shape, bool is_transposed) {
  const Lowering& lowering = site.lowering;
  const View& weights = lowering.view(site.node().inputs[1]);
  if (!holds_floats(weights)) return refused("weights are no floating-point numbers");
  if (lowering.graph().value(site.node().outputs[0]).is_exact)
    return refused("the sums of integers have to be exact");
  const bool is_kept = lowering.is_constant_view(weights);
  if (std::string why = why_refused(lowering, shape, is_kept); !why.empty())
    return refused(std::move(why));
  if (site.epilogue.norm != kNone)
    return refused("a BatchNormalization is folded into the weights");
  const std::optional<WinogradEpilogue> taken = winograd_epilogue(lowering, site.epilogue);
  std::string slow = why_slower(lowering, *shape, is_kept);
  if (slow.empty() && !taken && is_kept && shape->in < kLeastInAlone)
    slow = "the epilogue would be a step of its own";
  const Epilogue& epilogue = taken ? site.epilogue : site.alone;
  if (lowering.stored_type(epilogue.result) != lowering.real_type())
    return refused("the result is small and stays in f32");
  return accepted_unless(std::move(slow), [&site, &epilogue, shape = *shape, is_transposed,
                                           taken = taken.value_or(WinogradEpilogue{})] {
    Convolution(site, shape, is_transposed).lower(epilogue, taken);
  });
}

}  // namespace

Offer offer_winograd(const ConvSite& site) {
  const Node& node = site.node();
  const auto shape = shape_of(node, site.dims(node.inputs[0]), site.dims(node.outputs[0]),
                              site.dims(node.inputs[1]));
  return offer(site, shape, false);
}

Offer offer_winograd_transpose(const ConvSite& site) {
  const Node& node = site.node();
  std::optional<WinogradShape> shape = shape_of(
      node, site.dims(node.outputs[0]), site.dims(node.inputs[0]), site.dims(node.inputs[1]));
  if (shape) shape = backward(*shape);
  return offer(site, shape, true);
}

namespace {

void build_weight_grad(const ConvGradSite& site, const WinogradShape& shape) {
  Lowering& lowering = site.lowering;
  const Node& node = site.node();
  const Dims& x_dims = site.dims(node.inputs[0]);
  const Dims& y_dims = site.dims(node.inputs[1]);
  const ElementType type = lowering.real_type();
  const auto kernel = std::make_shared<const Winograd>(shape, type, lowering.options().threads);
  const View x = lowering.read(node.inputs[0], type, channels_last_strides(x_dims));
  const View dy = lowering.read(node.inputs[1], type, channels_last_strides(y_dims));
  const View made = lowering.make(node.outputs[0], ElementType::kF32,
                                  kept_strides(lowering.graph(), node.outputs[0]));
  const WinogradWeights strides{made.strides[0], made.strides[1], made.strides[3]};
  Step step{.name = node.name,
            .kernel = "tenon:winograd gradient",
            .flops = flops_of(shape),
            .always_succeeds = true};
  step.bytes = static_cast<double>(x.bytes() + dy.bytes() + made.bytes());
  const Place scratch{lowering.scratch(kernel->gradient_bytes()), 0};
  step.places = {place_of(x), place_of(dy), place_of(made), scratch};
  step.kernel_function = [kernel, strides](const kernels::Context& context,
                                           void* const* pointers) -> const char* {
    kernel->weight_gradient(context, pointers[0], pointers[1], static_cast<float*>(pointers[2]),
                            strides, pointers[3]);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace

Offer offer_winograd_weight_grad(const ConvGradSite& site) {
  const Node& node = site.node();
  const auto shape = shape_of(node, site.dims(node.inputs[0]), site.dims(node.inputs[1]),
                              site.dims(node.outputs[0]));
  if (std::string why = why_refused(site.lowering, shape, false); !why.empty())
    return refused(std::move(why));
  return accepted_unless(why_slower(site.lowering, *shape, false),
                         [&site, shape = *shape] { build_weight_grad(site, shape); });
}

}  // namespace tenon::onednn
