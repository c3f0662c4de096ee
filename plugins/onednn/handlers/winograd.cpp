// SPDX-License-Identifier: Apache-2.0
#include "winograd.hpp"

#include <algorithm>
#include <optional>

#include "../state_layout.hpp"
#include "../tail.hpp"
#include "conv_geometry.hpp"
#include "kernels/winograd.h"

namespace tenon::onednn {
namespace {

using kernels::Winograd;
using kernels::WinogradShape;
using kernels::WinogradWeights;

constexpr int64_t kLeastChannels = 64;
constexpr int64_t kLeastTiles = 256;
constexpr int64_t kLeastExtent = 4;  // of an image: half of a smaller one's tiles is padding

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
bool is_worthwhile(const Lowering& lowering, const WinogradShape& s) {
  const WinogradUse use = lowering.options().winograd;
  const ElementType type = lowering.real_type();
  const bool is_wanted =
      use == WinogradUse::kAll || (use == WinogradUse::kBf16 && type == ElementType::kBf16);
  return is_wanted && Winograd::is_fast(type) && s.in % 16 == 0 && s.out % 16 == 0 &&
         std::min(s.in, s.out) >= kLeastChannels && s.tiles() >= kLeastTiles &&
         std::min(s.out_height, s.out_width) >= kLeastExtent;
}

// The convolution whose result is the gradient of this one's source.
WinogradShape backward(const WinogradShape& s) {
  return {s.images,      s.out_height,   s.out_width, s.height, s.width,
          2 - s.pad_top, 2 - s.pad_left, s.out,       s.in};
}

// Weights that are real, and not those of a trained model unless all are wanted.
bool has_fit_weights(const Lowering& lowering, int value) {
  const View& view = lowering.view(value);
  const bool is_real = view.type == ElementType::kF32 || view.type == ElementType::kBf16;
  const bool takes_trained = lowering.options().winograd == WinogradUse::kAll;
  return is_real && !view.is_quantized() && (takes_trained || !lowering.is_constant_view(view));
}

// What of a tail the kernel does in its own last step.
struct Ending {
  int add = kNone;
  int add_node = kNone;
  bool relu = false;
};

std::optional<Ending> ending_of(const Lowering& lowering, const Tail& tail) {
  if (tail.quant || tail.ops.size() > 2) return std::nullopt;
  Ending ending;
  for (const TailOp& op : tail.ops) {
    if (ending.relu) return std::nullopt;
    if (op.eltwise) {
      const bool is_relu = op.eltwise->algorithm == dnnl::algorithm::eltwise_relu;
      if (!is_relu || op.eltwise->alpha != 0) return std::nullopt;
      ending.relu = true;
      continue;
    }
    const View& other = lowering.view(op.other);
    const bool is_sum = op.binary == dnnl::algorithm::binary_add && ending.add == kNone &&
                        other.dims == lowering.graph().values[tail.result].dims &&
                        !other.is_quantized();
    if (!is_sum) return std::nullopt;
    ending.add = op.other;
    ending.add_node = op.node;
  }
  return ending;
}

double flops_of(const WinogradShape& s) {  // of the sum, so that rates can be compared
  return 18.0 * static_cast<double>(s.images * s.out_height * s.out_width * s.in * s.out);
}

class Convolution {
 public:
  // is_transposed: weights are [in, out, 3, 3], their taps reversed.
  Convolution(Lowering& lowering, int node, const WinogradShape& shape, bool is_transposed)
      : lowering_(lowering),
        index_(node),
        node_(lowering.graph().nodes[node]),
        shape_(shape),
        is_transposed_(is_transposed),
        kernel_(std::make_shared<const Winograd>(
            shape, lowering.real_type(), lowering.options().threads)) {}

  bool lower() {
    Tail tail = find_tail(lowering_, index_, 1);
    if (tail.norm != kNone) return false;  // folded into the weights by handlers/conv
    std::optional<Ending> ending = ending_of(lowering_, tail);
    const bool has_two_biases = node_.input(2) != kNone && tail.bias != kNone;
    if (!ending || has_two_biases) {
      tail = empty_tail(lowering_, index_);
      ending = Ending{};
    }
    if (lowering_.stored_type(tail.result) != lowering_.real_type()) return false;
    add_step(tail, *ending);
    mark_absorbed(lowering_, tail);
    return true;
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
    if (is_transposed_) form += " turned";
    for (int64_t number : {strides.out, strides.in, bytes})
      form += " " + std::to_string(number);
    std::shared_ptr<const void> data =
        lowering_.weights().made(numbers, weights.bytes(), form, bytes, [&](void* to) {
          kernel_->pack(kernels::make_context(kernels::best_level()), numbers, strides,
                        is_transposed_, to);
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
  View result(const Tail& tail, const Ending& ending, const View& add, const View& src) {
    const Dims& dims = lowering_.graph().values[tail.result].dims;
    View dst{.type = lowering_.real_type(), .dims = dims, .strides = channels_last_strides(dims)};
    const bool is_free = add.exists() && add.buffer != src.buffer &&
                         lowering_.may_overwrite(add, dst, ending.add_node);
    dst.buffer = is_free ? add.buffer : lowering_.scratch(dst.bytes());
    return dst;
  }

  void add_step(const Tail& tail, const Ending& ending) {
    const View src = image(node_.inputs[0]);
    const View add = ending.add == kNone ? View{} : image(ending.add);
    const int bias = node_.input(2) != kNone ? node_.input(2) : tail.bias;
    Place biases;
    if (bias != kNone) biases = place_of(lowering_.read_row_major(bias, ElementType::kF32));
    const Place packed = pack();
    const View dst = result(tail, ending, add, src);
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
    step.kernel_function = [kernel = kernel_, relu = ending.relu](
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
    lowering_.set_view(tail.result, dst);
  }

  Lowering& lowering_;
  int index_;
  const Node& node_;
  WinogradShape shape_;
  bool is_transposed_;
  std::shared_ptr<const Winograd> kernel_;
};

const Dims& dims_of(const Lowering& lowering, int value) {
  return lowering.graph().values[value].dims;
}

}  // namespace

bool lower_winograd_conv(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (!has_fit_weights(lowering, node.inputs[1])) return false;
  const auto shape =
      shape_of(node, dims_of(lowering, node.inputs[0]), dims_of(lowering, node.outputs[0]),
               dims_of(lowering, node.inputs[1]));
  if (!shape || !is_worthwhile(lowering, *shape)) return false;
  return Convolution(lowering, index, *shape, false).lower();
}

bool lower_winograd_conv_transpose(Lowering& lowering, int index) {
  const Node& node = lowering.graph().nodes[index];
  if (!has_fit_weights(lowering, node.inputs[1])) return false;
  const auto shape = shape_of(node, dims_of(lowering, node.outputs[0]),
                              dims_of(lowering, node.inputs[0]), dims_of(lowering, node.inputs[1]));
  if (!shape || !is_worthwhile(lowering, backward(*shape))) return false;
  return Convolution(lowering, index, backward(*shape), true).lower();
}

bool lower_winograd_weight_grad(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& x_dims = dims_of(lowering, node.inputs[0]);
  const Dims& y_dims = dims_of(lowering, node.inputs[1]);
  const auto shape = shape_of(node, x_dims, y_dims, dims_of(lowering, node.outputs[0]));
  if (!shape || !is_worthwhile(lowering, *shape)) return false;
  const ElementType type = lowering.real_type();
  const auto kernel = std::make_shared<const Winograd>(*shape, type, lowering.options().threads);
  const View x = lowering.read(node.inputs[0], type, channels_last_strides(x_dims));
  const View dy = lowering.read(node.inputs[1], type, channels_last_strides(y_dims));
  const View made =
      lowering.make(node.outputs[0], ElementType::kF32, kept_strides(graph, node.outputs[0]));
  const WinogradWeights strides{made.strides[0], made.strides[1], made.strides[3]};
  Step step{.name = node.name,
            .kernel = "tenon:winograd gradient",
            .flops = flops_of(*shape),
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
  return true;
}

}  // namespace tenon::onednn
