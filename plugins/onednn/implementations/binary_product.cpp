// SPDX-License-Identifier: Apache-2.0
// Conv, MatMul and Gemm of packed signs (rewrites/join_signs) with weights that are signs too. What
// follows the sums is taken along as by products of 8-bit quantized values.

#include "kernels/binary_product.h"

#include <string>
#include <utility>

#include "conv_site.hpp"
#include "gemm_epilogue.hpp"
#include "graph/binary_weights.hpp"

namespace tenon::onednn {
namespace {

bool are_signs(const Graph& graph, int value) {
  const int producer = graph.values[value].producer;
  return producer != kNone && graph.nodes[producer].op == "tenon.Signs";
}

// The signs of each column side by side, tap by tap: [n, taps, words of a pixel].
std::vector<uint32_t> columns_of(const GemmWeights& weights,
                                 const std::vector<bool>& signs,
                                 int64_t n,
                                 int64_t channels) {
  const int64_t taps = static_cast<int64_t>(weights.k_places.size()) / channels;
  const int64_t words = kernels::words_of(channels);
  std::vector<uint32_t> columns(static_cast<size_t>(n * taps * words), 0);
  for (int64_t column = 0; column < n; ++column) {
    for (int64_t i = 0; i < taps * channels; ++i) {
      const int64_t place = column * weights.n_stride + weights.k_places[static_cast<size_t>(i)];
      const int64_t c = i % channels;
      const int64_t word = (column * taps + i / channels) * words + c / kernels::kSignsOfWord;
      if (signs[static_cast<size_t>(place)])
        columns[static_cast<size_t>(word)] |= 1U << (c % kernels::kSignsOfWord);
    }
  }
  return columns;
}

class StepBuilder {
 public:
  // channels: signs of a pixel, or of a row of a matrix.
  StepBuilder(Lowering& lowering, GemmStep step, const Epilogue& epilogue, int64_t channels)
      : lowering_(lowering),
        step_(std::move(step)),
        weights_(weights_of(lowering.graph(), step_.node)),
        channels_(channels) {
    const size_t axis = weight_channels(lowering.graph().nodes[step_.node]);
    step_.weights.view.quant = {};
    step_.weights.view.channels =
        std::make_shared<ChannelQuant>(ChannelQuant{static_cast<int>(axis), weights_.magnitudes});
    taken_ = gemm_epilogue_of(lowering, step_, epilogue);
  }

  void build() {
    const Epilogue& epilogue = taken_.epilogue;
    View dst{.type = epilogue.quant ? epilogue.quant_type : ElementType::kF32,
             .dims = lowering_.graph().values[epilogue.result].dims,
             .strides = step_.dst_strides};
    others_ = bind(lowering_, taken_);
    dst.buffer = lowering_.scratch(dst.bytes());
    columns_ = columns_of(step_.weights, weights_.signs, step_.args.n, channels_);
    emit(dst, arguments(dst));
    lowering_.set_view(epilogue.result, dst);
    mark_absorbed(lowering_, epilogue);
  }

 private:
  static BinaryWeights weights_of(const Graph& graph, int index) {
    const Node& node = graph.nodes[index];
    return *binary_weights(graph, node.inputs[1], weight_channels(node));
  }

  kernels::BinaryProductArgs arguments(const View& dst) {
    kernels::BinaryProductArgs args;
    const int64_t words = kernels::words_of(channels_);
    args.m = step_.args.m;
    args.n = step_.args.n;
    args.words = step_.args.k / channels_ * words;
    args.a_stride = words;
    args.has_windows = step_.args.a.has_windows;
    args.windows = step_.args.a.windows;
    args.windows.pixel = args.windows.channels = words;
    set_result(taken_, dst, step_.dst_row, &args);
    return args;
  }

  template <class T>
  View constant(ElementType type, const std::vector<T>& numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    std::shared_ptr<void> made = aligned_bytes(count * static_cast<int64_t>(sizeof(T)));
    std::copy(numbers.begin(), numbers.end(), static_cast<T*>(made.get()));
    return lowering_.make_constant(type, {count}, made);
  }

  void emit(const View& dst, const kernels::BinaryProductArgs& args) {
    const int64_t padded = kernels::packed_binary_columns(args.n);
    const View b = lowering_.make_constant(ElementType::kU32, {padded * args.words},
                                           packed_weights(args.words));
    kernels::BorderShifts border;
    if (args.has_windows)
      border = kernels::border_shifts(args.windows, channels_, columns_.data(), args.n);
    else
      border.shifts.assign(static_cast<size_t>(padded), static_cast<int32_t>(step_.args.k));
    const EpilogueRows rows = epilogue_rows(lowering_, step_, taken_, padded);
    const View shifts = constant(ElementType::kI32, border.shifts);
    const bool has_places = !border.places.empty();
    const View places = constant(ElementType::kU16, border.places);
    Step step{.name = lowering_.graph().nodes[step_.node].name, .kernel = "tenon:binary_product"};
    step.flops = 2.0 * static_cast<double>(args.m * args.n * step_.args.k);
    step.bytes = static_cast<double>(args.m * args.words * 4 + dst.bytes() + b.bytes());
    step.places = {place_of(step_.src), place_of(dst),    place_of(b),     place_of(rows.scales),
                   place_of(rows.bias), place_of(shifts), place_of(places)};
    const size_t n_places = step.places.size();
    step.places.insert(step.places.end(), others_.begin(), others_.end());
    step.always_succeeds = true;
    step.kernel_function = [args, has_places, n_places, ops = taken_.ops](
                               const kernels::Context& context,
                               void* const* pointers) -> const char* {
      kernels::BinaryProductArgs call = args;
      call.a = static_cast<const uint32_t*>(pointers[0]);
      call.dst.data = pointers[1];
      call.b = static_cast<const uint32_t*>(pointers[2]);
      call.scales = static_cast<const float*>(pointers[3]);
      call.bias = static_cast<const float*>(pointers[4]);
      call.shifts = static_cast<const int32_t*>(pointers[5]);
      if (has_places) call.places = static_cast<const uint16_t*>(pointers[6]);
      const BoundOps bound(ops, pointers + n_places, &call);
      kernels::binary_product(context, call);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
  }

  // Shared by all plans of the model.
  std::shared_ptr<const void> packed_weights(int64_t words) {
    const int64_t n = step_.args.n;
    const Value& stored = lowering_.graph().values[weights_.constant];
    std::string form = "signs";
    for (int64_t number : {words, n, channels_, step_.weights.n_stride})
      form += " " + std::to_string(number);
    return lowering_.weights().made(stored.data, stored.bytes(), form,
                                    kernels::packed_binary_columns(n) * words * 4, [&](void* to) {
                                      kernels::pack_binary(columns_.data(), n, words,
                                                           static_cast<uint32_t*>(to));
                                    });
  }

  Lowering& lowering_;
  GemmStep step_;
  BinaryWeights weights_;
  int64_t channels_;
  GemmEpilogue taken_ = {};
  std::vector<uint32_t> columns_ = {};
  std::vector<Place> others_ = {};  // operands of the epilogue
};

}  // namespace

Offer offer_binary_conv(const ConvSite& site) {
  if (!are_signs(site.lowering.graph(), site.node().inputs[0]))
    return refused("it does not multiply signs by signs");
  return accepted([&site] {
    GemmStep step = conv_step(site.lowering, site.index);
    step.src = site.lowering.view(site.node().inputs[0]);
    add_weights(site.lowering, site.epilogue, &step);
    StepBuilder(site.lowering, std::move(step), site.epilogue, site.dims(site.node().inputs[0])[1])
        .build();
  });
}

Offer offer_binary_product(const ProductSite& site) {
  const Lowering& lowering = site.lowering;
  const Graph& graph = lowering.graph();
  if (!are_signs(graph, site.product.a)) return refused("it does not multiply signs by signs");
  const Dims& weights = graph.values[site.product.b].dims;
  const int64_t k = graph.values[site.product.a].dims.back();
  const int64_t n = weights[weight_channels(site.node())];
  GemmStep step{.node = site.product.node, .bias = site.product.bias};
  step.src = lowering.view(site.product.a);
  step.args.m = graph.values[site.product.a].count() / k;
  step.args.n = n;
  step.args.k = k;
  step.weights.n_stride = site.product.transpose_b ? k : 1;
  for (int64_t i = 0; i < k; ++i)
    step.weights.k_places.push_back(site.product.transpose_b ? i : i * n);
  step.dst_strides = row_major_strides(graph.values[site.epilogue.result].dims);
  step.dst_row = n;
  return accepted([&site, step, k] { StepBuilder(site.lowering, step, site.epilogue, k).build(); });
}

}  // namespace tenon::onednn
