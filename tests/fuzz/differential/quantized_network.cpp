// SPDX-License-Identifier: Apache-2.0
#include "quantized_network.hpp"

#include <algorithm>
#include <cmath>

#include "tenon/role/op.h"

#include "stored.hpp"

namespace tenon::fuzz {
namespace {

class Quantizer {
 public:
  Quantizer(EditView edit, Random& random) : edit_(edit), random_(random) {}

  Status quantize(Node node) {
    const bool has_constant = node.input(1) && node.input(1).is_constant();
    TN_TRY(activations, rounded(node.input(0)));
    TN_CHECK(edit_.set_input(node, 0, activations.value));
    if (!node.input(1)) return {};
    TN_TRY(weights, has_constant && !random_.one_in(4)
                        ? stored(edit_, node.input(1), TN_I8, random_)
                        : stored_of(rounded(node.input(1))));
    TN_CHECK(edit_.set_input(node, 1, weights.value));
    const bool has_bias = node.n_inputs() > 2 && node.input(2) && node.input(2).is_constant();
    if (!has_bias || weights.scales.size() != 1 || random_.one_in(2)) return {};
    TN_TRY(bias, bias_of(node.input(2), activations.scale * weights.scales[0]));
    return edit_.set_input(node, 2, bias);
  }

  // Everybody reads the value in 8 bits.
  Status quantize(Value value) {
    TN_TRY(after, rounded(value));
    TN_CHECK(edit_.replace(value, after.value));
    return edit_.set_input(after.quantizes, 0, value);
  }

 private:
  struct Rounded {
    Value value;
    float scale;
    Node quantizes;
  };

  static Result<Stored> stored_of(Result<Rounded> by_nodes) {
    if (!by_nodes.ok()) return std::move(by_nodes).status();
    return Stored{by_nodes->value, {by_nodes->scale}};
  }

  // By nodes, with one scale.
  Result<Rounded> rounded(Value value) {
    const bool is_unsigned = random_.one_in(2);
    const float scale = 0.01f + 0.001f * static_cast<float>(random_.below(30));
    const auto zero = static_cast<int>(is_unsigned ? 100 + random_.below(56) : random_.below(20));
    TN_TRY(factor, edit_.constant<float>(TN_F32, {}, {scale}));
    TN_TRY(zero_point, is_unsigned
                           ? edit_.constant<uint8_t>(TN_U8, {}, {static_cast<uint8_t>(zero)})
                           : edit_.constant<int8_t>(TN_I8, {}, {static_cast<int8_t>(zero)}));
    TN_TRY(integers, edit_.op("QuantizeLinear", {value, factor, zero_point}));
    TN_TRY(back, edit_.op("DequantizeLinear", {integers, factor, zero_point}));
    return Rounded{back, scale, integers.producer()};
  }

  Result<Value> bias_of(Value bias, float scale) {
    const Tensor numbers = bias.constant();
    std::vector<int32_t> integers;
    for (int64_t i = 0; i < bias.type().elements(); ++i)
      integers.push_back(static_cast<int32_t>(std::lround(numbers.data<float>()[i] / scale)));
    TN_TRY(stored, edit_.constant<int32_t>(TN_I32, bias.type().dims, integers));
    TN_TRY(factor, edit_.constant<float>(TN_F32, {}, {scale}));
    return edit_.op("DequantizeLinear", {stored, factor});
  }

  EditView edit_;
  Random& random_;
};

bool has_8_bit_form(Node node) {
  const tn_op* row = node.row();
  return row && view(row->quant).starts_with("compute") && node.input(0) &&
         node.input(0).dtype() == TN_F32;
}

}  // namespace

Status quantize_network(EditView edit, Random& random) {
  Quantizer quantizer(edit, random);
  for (Node node : edit.graph().nodes()) {
    Value result = node.outputs().empty() ? Value{} : node.output();
    if (has_8_bit_form(node) && !random.one_in(6)) TN_CHECK(quantizer.quantize(node));
    if (result && result.dtype() == TN_F32 && random.one_in(3))
      TN_CHECK(quantizer.quantize(result));
  }
  return {};
}

}  // namespace tenon::fuzz
