// SPDX-License-Identifier: Apache-2.0
#include "layer_bias.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::quantizer {
namespace {

bool is_vector(Value v) {
  return v && v.is_constant() && v.type().rank() == 1;
}

// As a constant of its own, or behind a DequantizeLinear.
bool find_numbers(Value v, LayerBias* out) {
  if (is_vector(v) && v.dtype() == TN_F32) {
    out->numbers = v;
    return true;
  }
  Node dq = v ? v.producer() : Node{};
  if (!dq || !dq.is("DequantizeLinear") || !is_vector(dq.input(0)) || dq.input(2)) return false;
  if (dq.input(0).dtype() != TN_I32 || dq.input(1).dtype() != TN_F32) return false;
  if (!dq.input(1).is_constant()) return false;
  out->numbers = dq.input(0);
  out->scale = dq.input(1);
  return true;
}

}  // namespace

LayerBias bias_of(Node node, const Role& role) {
  LayerBias out{node, 0, {}, {}, node.output()};
  if (role.is_fused || role.products.size() != 1) {
    out.why = "it does more than a product and a bias";
    return out;
  }
  const Product& product = role.products[0];
  if (node.attr_float("beta", 1) != 1) {
    out.why = "its bias has a factor";
    return out;
  }
  out.input = static_cast<uint64_t>(std::max<int64_t>(product.bias, 0));
  if (product.bias >= 0 && find_numbers(product.bias_of(node), &out)) return out;
  Value result = node.output();
  Node add = result.consumer_count() == 1 && !result.is_output() ? result.consumer(0) : Node{};
  // A vector lies along the last axis: the channels of a product, not those of a convolution.
  if (add && add.is("Add") && product.weight_of(node).type().rank() == 2) {
    for (uint64_t i = 0; i < 2; ++i) {
      if (!find_numbers(add.input(i), &out)) continue;
      out.reader = add;
      out.input = i;
      out.result = add.output();
      return out;
    }
  }
  out.why = "it has no constant bias";
  return out;
}

Status shift_bias(EditView edit, const LayerBias& bias, std::vector<double>* shift) {
  Value numbers = edit.value(bias.numbers.id);
  std::string name = cat(bias.reader.name(), "_corrected_bias");
  std::vector<int64_t> shape{static_cast<int64_t>(shift->size())};
  Node reader = edit.node(bias.reader.id);
  if (!bias.scale) {
    std::vector<float> all;
    const float* old = numbers.constant().data<float>();
    for (size_t c = 0; c < shift->size(); ++c) {
      all.push_back(old[c] + static_cast<float>((*shift)[c]));
      (*shift)[c] = static_cast<double>(all.back()) - static_cast<double>(old[c]);
    }
    TN_TRY(made, edit.constant<float>(TN_F32, shape, all, name));
    return edit.set_input(reader, bias.input, made);
  }
  Tensor old = numbers.constant(), scale = edit.value(bias.scale.id).constant();
  const bool is_one = element_count(scale.dl()) == 1;
  std::vector<int32_t> all;
  for (size_t c = 0; c < shift->size(); ++c) {
    double step = static_cast<double>(scale.data<float>()[is_one ? 0 : c]);
    double before = static_cast<double>(old.data<int32_t>()[c]);
    constexpr double kMost = std::numeric_limits<int32_t>::max();
    double after = std::clamp(before + std::nearbyint((*shift)[c] / step), -kMost, kMost);
    (*shift)[c] = (after - before) * step;
    all.push_back(static_cast<int32_t>(after));
  }
  TN_TRY(made, edit.constant<int32_t>(TN_I32, shape, all, name));
  Node dq = reader.input(bias.input).producer();
  std::string back = name + "_dequantized";
  TN_TRY(again, edit.add({.type = "DequantizeLinear",
                          .inputs = {made, edit.value(bias.scale.id)},
                          .attrs = {{"axis", dq.attr_int("axis", 1)}},
                          .name = back,
                          .output_names = {back}}));
  TN_CHECK(edit.set_input(reader, bias.input, again.output()));
  return dq.output().consumer_count() == 0 ? edit.erase(dq) : Status();
}

double largest_of(const std::vector<double>& shift) {
  double most = 0;
  for (double one : shift)
    most = std::max(most, std::abs(one));
  return most;
}

}  // namespace tenon::quantizer
