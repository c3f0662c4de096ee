// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bias of a layer in a quantized model: where it is, and how a shift gets into it.

#include <string>
#include <vector>

#include "tenon/sdk/edit.hpp"

#include "role.hpp"

namespace tenon::quantizer {

// Where a layer's bias is: a constant [n], as int32 with a scale for each entry or as float32.
struct LayerBias {
  Node reader;  // reads it at this input
  uint64_t input = 0;
  Value numbers;         // the constant
  Value scale;           // of an int32 bias
  Value result;          // what the bias has been added to
  std::string why = {};  // when there is none that can be corrected
};

// The bias of the layer, or what an Add that alone reads its result adds to it.
LayerBias bias_of(Node node, const Role& role);
// Adds the shift to the bias; `shift` becomes what was added when the bias had been rounded.
Status shift_bias(EditView edit, const LayerBias& bias, std::vector<double>* shift);
double largest_of(const std::vector<double>& shift);

}  // namespace tenon::quantizer
