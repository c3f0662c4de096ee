// SPDX-License-Identifier: Apache-2.0
#include "binary_weights.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/binary_product.h"

namespace tenon::onednn {
namespace {

// Signs of numbers that are all of one size within a channel.
template <class T>
bool take_signs(const T* numbers, const Dims& dims, size_t axis, BinaryWeights* to) {
  const int64_t inner =
      element_count(Dims(dims.begin() + static_cast<int64_t>(axis) + 1, dims.end()));
  const int64_t count = element_count(dims);
  std::vector<double> sizes(static_cast<size_t>(dims[axis]), 0);
  to->signs.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<double>(numbers[i]);
    double& size = sizes[static_cast<size_t>(i / inner % dims[axis])];
    if (size == 0) size = std::fabs(number);
    if (std::fabs(number) != size || !(size > 0) || !std::isfinite(size)) return false;
    to->signs[static_cast<size_t>(i)] = number > 0;
  }
  for (size_t c = 0; c < sizes.size(); ++c)
    to->magnitudes[c] = static_cast<float>(double{to->magnitudes[c]} * sizes[c]);
  return true;
}

// The scales of a DequantizeLinear of int8 constants; empty where it is of another kind.
std::vector<float> scales_of(const Graph& graph, const Node& node, size_t axis, int64_t channels) {
  const Value& scale = graph.values[node.inputs[1]];
  if (scale.data == nullptr || scale.type != ElementType::kF32) return {};
  if (node.integer("block_size", 0) != 0) return {};
  if (node.input(2) != kNone && !holds_zeros(graph.values[node.inputs[2]])) return {};
  const auto* numbers = static_cast<const float*>(scale.data);
  if (scale.count() == 1) return std::vector<float>(static_cast<size_t>(channels), numbers[0]);
  const int64_t along =
      positive_axis(node.integer("axis", 1), graph.values[node.inputs[0]].dims.size());
  if (scale.dims != Dims{channels} || along != static_cast<int64_t>(axis)) return {};
  return {numbers, numbers + channels};
}

int64_t words_of_row(const Dims& weights, bool is_conv, int64_t k) {
  if (!is_conv) return kernels::words_of(k);
  return kernels::words_of(weights[1]) * element_count(Dims(weights.begin() + 2, weights.end()));
}

bool is_known_row(const Graph& graph, int bias, int64_t n) {
  if (bias == kNone) return true;
  const Value& v = graph.values[bias];
  return v.data != nullptr && v.type == ElementType::kF32 && v.count() == n;
}

}  // namespace

size_t weight_channels(const Node& node) {
  if (node.op == "Conv") return 0;
  return node.op == "Gemm" && node.integer("transB", 0) != 0 ? 0 : 1;
}

std::optional<BinaryWeights> binary_weights(const Graph& graph, int value, size_t axis) {
  const Dims& dims = graph.values[value].dims;
  if (dims.size() <= axis || graph.values[value].count() == 0) return std::nullopt;
  BinaryWeights made{value, {}, {}};
  made.magnitudes.assign(static_cast<size_t>(dims[axis]), 1.0F);
  const int producer = graph.values[value].producer;
  if (producer != kNone) {
    const Node& node = graph.nodes[producer];
    if (node.op != "DequantizeLinear") return std::nullopt;
    made.constant = node.inputs[0];
    made.magnitudes = scales_of(graph, node, axis, dims[axis]);
    if (made.magnitudes.empty()) return std::nullopt;
  }
  const Value& stored = graph.values[made.constant];
  if (stored.data == nullptr) return std::nullopt;
  bool are_signs = false;
  if (stored.type == ElementType::kS8)
    are_signs = take_signs(static_cast<const int8_t*>(stored.data), dims, axis, &made);
  else if (stored.type == ElementType::kF32 && producer == kNone)
    are_signs = take_signs(static_cast<const float*>(stored.data), dims, axis, &made);
  are_signs = are_signs && std::all_of(made.magnitudes.begin(), made.magnitudes.end(),
                                       [](float x) { return x > 0 && std::isfinite(x); });
  return are_signs ? std::optional(std::move(made)) : std::nullopt;
}

bool multiplies_signs(const Graph& graph, int index, int value) {
  const Node& node = graph.nodes[index];
  const bool is_conv = node.op == "Conv", is_gemm = node.op == "Gemm";
  if (!is_conv && !is_gemm && node.op != "MatMul") return false;
  if (node.inputs[0] != value || std::count(node.inputs.begin(), node.inputs.end(), value) != 1)
    return false;
  const Dims& dims = graph.values[value].dims;
  const Dims& weights = graph.values[node.inputs[1]].dims;
  const size_t rank = dims.size();
  if (is_conv && (rank < 3 || rank > 4 || node.integer("group", 1) != 1)) return false;
  if (!is_conv && (rank < 2 || weights.size() != 2 || node.integer("transA", 0) != 0)) return false;
  if (is_gemm && (node.real("alpha", 1) != 1 || node.real("beta", 1) != 1)) return false;
  const int64_t k = is_conv ? dims[1] : dims.back();
  if (words_of_row(weights, is_conv, k) > kernels::kMostBinaryWords) return false;
  const size_t axis = weight_channels(node);
  return is_known_row(graph, node.input(2), weights[axis]) &&
         binary_weights(graph, node.inputs[1], axis).has_value();
}

}  // namespace tenon::onednn
