// SPDX-License-Identifier: Apache-2.0
#pragma once
// What RNN, GRU and LSTM share: sizes, layouts, directions, sequence lengths, activations, and the
// walk over steps. A cell is a function of one step of one sample.

#include <algorithm>

#include "activations.hpp"
#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops {

// One direction's weights in double: W [gates*hidden, input], R [gates*hidden, hidden] and the
// two biases.
struct Direction {
  std::vector<double> w, r, bias_w, bias_r;
  std::vector<double> peepholes;  // LSTM's, [3*hidden], or none
  std::vector<Activation> activations;
};

struct Recurrent {
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, gates = 0;
  double clip = 0;  // 0: none
  std::vector<int64_t> lengths;
  std::vector<Direction> directions;

  double clipped(double x) const { return clip > 0 ? std::min(std::max(x, -clip), clip) : x; }
  // Row `row` of R times h, and its bias.
  double recur(const Direction& d, int64_t row, const std::vector<double>& h) const {
    double sum = d.bias_r[static_cast<size_t>(row)];
    for (int64_t k = 0; k < hidden; ++k)
      sum += d.r[static_cast<size_t>(row * hidden + k)] * h[static_cast<size_t>(k)];
    return sum;
  }
};

// One step: x has W x + its bias for every gate; h and c (LSTM's) are the state and become the
// next.
using Cell = void (*)(const Recurrent&,
                      const Direction&,
                      Node,
                      const std::vector<double>& x,
                      std::vector<double>& h,
                      std::vector<double>& c);

// The operator: gates per cell, inputs as ONNX orders them, as many activations per direction as
// `defaults` names.
Status run_recurrent(const Call& call,
                     int64_t gates,
                     const std::vector<std::string>& defaults,
                     Cell cell);
Status recurrent_shape(EditView edit, Node node);
OpCost recurrent_cost(Node node);
Result<Node> recurrent_sample(EditView edit, uint64_t seed, const char* type, int64_t gates);

#define TENON_RECURRENT_ATTRIBUTES                                    \
  R"({"name": "activation_alpha", "type": "floats"},)"                \
  R"({"name": "activation_beta", "type": "floats"},)"                 \
  R"({"name": "activations", "type": "strings"},)"                    \
  R"({"name": "clip", "type": "float"},)"                             \
  R"({"name": "direction", "type": "string", "default": "forward"},)" \
  R"({"name": "hidden_size", "type": "int"},)"                        \
  R"({"name": "layout", "type": "int", "default": 0})"

}  // namespace tenon::ops
