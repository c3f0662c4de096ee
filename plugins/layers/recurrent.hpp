// SPDX-License-Identifier: Apache-2.0
#pragma once
// LSTM and GRU: layers of cells over a sequence [b, t, n], one direction or both.

#include "layer.hpp"

namespace tenon::layers {

// How ONNX's operator and PyTorch's parameters differ.
struct Cell {
  std::string_view op;
  std::vector<int64_t> gates;  // PyTorch's number of each of ONNX's gates, in ONNX's order
  bool has_memory;             // a second state beside the hidden one
};

class Recurrent {
 public:
  static Result<Recurrent> create(tn_ctx* ctx, const Options& options, const Cell& cell);

  // Inputs: x and, if they are given, the first hidden state [layers directions, b, hidden] and
  // memory. Outputs: the last layer's hidden states [b, t, directions hidden], and the states at
  // the end. Parameters are PyTorch's: weight_ih_l0 [gates hidden, n], weight_hh_l0, bias_ih_l0,
  // bias_hh_l0, and for the other direction with _reverse behind.
  Result<std::vector<Value>> build(LayerUse& use) const;

 private:
  struct Operands {
    Value w, r, b;  // [directions, ...], gates in ONNX's order
  };
  Value reordered(LayerUse& use, Value rows) const;
  Operands operands(LayerUse& use, int64_t layer, int64_t in) const;
  Value state(LayerUse& use, size_t input, int64_t layer) const;

  Cell cell_;
  int64_t hidden_ = 0, layers_ = 1, directions_ = 1;
  bool has_bias_ = true;
  double dropout_ = 0;
  Initializers init_;
};

}  // namespace tenon::layers

// clang-format off
#define TENON_RECURRENT_SCHEMA(name) \
  R"({"class": ")" name R"(", "required": ["hidden"], "properties": {)" \
  R"("hidden": {"type": "integer", "minimum": 1, "description": "hidden size"},)" \
  R"("layers": {"type": "integer", "minimum": 1, "default": 1, "description": "number of stacked layers"},)" \
  R"("bidirectional": {"type": "boolean", "default": false, "description": "bidirectional"},)" \
  R"("dropout": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0, "description": "dropout between the layers, while training"},)" \
  R"("bias": {"type": "boolean", "default": true, "description": "adds biases"},)" \
  TENON_INITS("layers.fan_uniform", "layers.fan_uniform") "}}"
// clang-format on
