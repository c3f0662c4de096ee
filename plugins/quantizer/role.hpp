// SPDX-License-Identifier: Apache-2.0
#pragma once
// The quantization role of a node: the column `quant` of its operator's row (abi/quant.md), as the
// host has parsed it, with what depends on attributes worked out.

#include <utility>
#include <vector>

#include "tenon/sdk/graph.hpp"

namespace tenon::quantizer {

enum class Kind : uint32_t {
  kFloat = TN_QUANT_FLOAT,
  kCompute = TN_QUANT_COMPUTE,
  kSameScale = TN_QUANT_SAME_SCALE,
  kTable = TN_QUANT_TABLE,
  kRequant = TN_QUANT_REQUANT,
  kQuantize = TN_QUANT_QUANTIZE,
  kDequantize = TN_QUANT_DEQUANTIZE,
  kInteger = TN_QUANT_INTEGER,
};

struct Product {  // inputs of a compute node; bias -1: has none
  int64_t act = 0, weight = 1, bias = -1;
  int64_t axis = 0;  // the weight's output channel

  Value act_of(Node node) const { return node.input(static_cast<uint64_t>(act)); }
  Value weight_of(Node node) const { return node.input(static_cast<uint64_t>(weight)); }
  Value bias_of(Node node) const {
    return bias < 0 ? Value() : node.input(static_cast<uint64_t>(bias));
  }
};

struct Role {
  Kind kind = Kind::kFloat;
  std::vector<Product> products;                    // of a compute node: one for each weight
  int64_t rows = -1;                                // a table whose rows are looked up; -1: none
  std::vector<std::pair<int64_t, int64_t>> stored;  // of a float node: weights, with their channel
  bool is_fused = false;  // a compute node that does more than a product and a bias
  bool pointwise = false;
  bool is_elementwise = false;     // each number of the result is made of one of input 0
  bool lays_side_by_side = false;  // the result is its inputs, one after the other
  bool has_row = false;

  // Works on quantized values already.
  bool is_quantized() const {
    return kind == Kind::kQuantize || kind == Kind::kDequantize || kind == Kind::kInteger;
  }
  bool is_float() const { return kind == Kind::kFloat || is_quantized(); }
};

Role role_of(Node node);
// Of the operators that move elements, those that write zeros between them.
bool writes_zeros(Node node);
// Whether the node, on stored values of one scale, gives what stands for its result on floats: it
// moves elements, lays them side by side, or takes means whose weights add up to 1.
bool keeps_scale(Node node);

}  // namespace tenon::quantizer
