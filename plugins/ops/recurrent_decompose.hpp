// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recurrent operators from smaller ones: what their decompose columns share.

#include "activations.hpp"

namespace tenon::ops {

// One step of a cell, in the body of a Scan: h [batch, hidden] and LSTM's c become the next ones.
struct Step {
  Builder& b;
  Node node;
  const std::vector<Activation>& activations;
  int64_t hidden;
  Value h, c;
  Value x;      // W x + biases, of all gates: [batch, gates*hidden]
  Value r;      // [hidden, gates*hidden]
  Value extra;  // LSTM's peepholes, or GRU's bias that comes before its reset gate; or falsy

  Value gate(Value from, int64_t which) const;     // of a row of gates along the last axis
  Value bent(size_t activation, Value sum) const;  // clipped, then through an activation
};
using CellStep = void (*)(Step&);

Result<std::vector<Value>> recurrent_parts(EditView edit,
                                           Node node,
                                           int64_t gates,
                                           const std::vector<std::string>& defaults,
                                           CellStep step);

}  // namespace tenon::ops
