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

  // So many gates, side by side along the last axis. One node: its gradient puts them side by side
  // again, where that of slices would add padded ones.
  std::vector<Value> gates(Value from, uint64_t n) const;
  Value bent(size_t activation, Value sum) const;  // clipped, then through an activation
};
using CellStep = void (*)(Step&);

Result<std::vector<Value>> recurrent_parts(EditView edit,
                                           Node node,
                                           int64_t gates,
                                           const std::vector<std::string>& defaults,
                                           CellStep step);

}  // namespace tenon::ops
