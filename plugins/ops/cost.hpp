// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes that a node moves: all that it reads and writes, once.
#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

inline double node_bytes(Node node) {
  double sum = 0;
  for (const std::vector<Value>& list : {node.inputs(), node.outputs()}) {
    for (Value value : list) {
      Type type = value ? value.type() : Type();
      if (type.is_static()) sum += static_cast<double>(bytes_of(type.dtype, type.elements()));
    }
  }
  return sum;
}

inline double output_elements(Node node) {
  Type type = node.output().type();
  return type.is_static() ? static_cast<double>(type.elements()) : 0;
}

// Operators that only move data.
inline OpCost move_cost(Node node) {
  return {0, node_bytes(node)};
}

}  // namespace tenon::ops
