// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activations that a model to train in 8 bits stores, by their scale: what one scale and zero point
// stand for.

#include <string>
#include <vector>

#include "tenon/role/observer.h"

#include "tenon/sdk/edit.hpp"

namespace tenon::quantizer {

struct StoredValues {
  Value scale, zero;          // constants of rank 0: float32, and uint8 or (symmetric) int8
  std::vector<Value> values;  // what is stored with them
  bool is_signed = false;

  tn_range range() const;  // of which the scale is made
};

// Refuses a graph that has none.
Result<std::vector<StoredValues>> stored_values(Graph graph);

}  // namespace tenon::quantizer
