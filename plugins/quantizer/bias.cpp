// SPDX-License-Identifier: Apache-2.0
#include "bias.hpp"

#include <cmath>
#include <limits>

namespace tenon::quantizer {
namespace {

constexpr double kInt32 = std::numeric_limits<int32_t>::max();
constexpr double kBound = kInt32 / 2;  // the other half is for the products that are added

// The bias as a vector of one number per channel, or nothing.
std::vector<float> bias_of(Node node, const Product& product) {
  Value v = product.bias_of(node);
  if (!v || !v.is_constant() || v.dtype() != TN_F32) return {};
  // Factors of the product and of the bias would have to go into the scales.
  if (node.attr_float("alpha", 1) != 1 || node.attr_float("beta", 1) != 1) return {};
  Type weight = product.weight_of(node).type();
  DLTensor tensor = v.constant().dl();
  if (tensor.ndim != 1 || tensor.shape[0] != weight.dims[static_cast<size_t>(product.axis)])
    return {};
  const float* data = data_of<float>(tensor);
  return {data, data + tensor.shape[0]};
}

}  // namespace

std::vector<float> bias_bounds(Node node, const Product& product, float act_scale) {
  std::vector<float> bounds;
  for (float b : bias_of(node, product))
    bounds.push_back(static_cast<float>(std::abs(static_cast<double>(b)) /
                                        (kBound * static_cast<double>(act_scale))));
  return bounds;
}

Result<bool> store_bias(EditView edit,
                        Node node,
                        const Product& product,
                        const std::vector<float>& weight_scale,
                        float act_scale) {
  std::vector<float> bias = bias_of(node, product), scale;
  if (bias.empty()) return false;
  std::vector<int32_t> numbers;
  for (size_t c = 0; c < bias.size(); ++c) {
    scale.push_back(act_scale * weight_scale[weight_scale.size() == 1 ? 0 : c]);
    double q = std::nearbyint(static_cast<double>(bias[c]) / static_cast<double>(scale.back()));
    // The weight is shared and has another node's scale, or the product is too small for a float.
    if (!(std::abs(q) <= kInt32)) return false;
    numbers.push_back(static_cast<int32_t>(q));
  }
  std::string name = cat(node.name(), "_bias");
  std::vector<int64_t> channels{static_cast<int64_t>(bias.size())};
  TN_TRY(value, edit.constant<int32_t>(TN_I32, channels, numbers, name + "_quantized"));
  TN_TRY(scales, edit.constant<float>(TN_F32, channels, scale, name + "_scale"));
  std::string back = name + "_dequantized";
  TN_TRY(dq, edit.add({.type = "DequantizeLinear",
                       .inputs = {value, scales},
                       .attrs = {{"axis", 0}},
                       .name = back,
                       .output_names = {back}}));
  TN_CHECK(edit.set_input(node, static_cast<uint64_t>(product.bias), dq.output()));
  return true;
}

}  // namespace tenon::quantizer
