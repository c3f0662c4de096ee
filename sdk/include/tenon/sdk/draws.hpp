// SPDX-License-Identifier: Apache-2.0
#pragma once
// The seed of an operator that draws: its attribute, which ONNX keeps as a float for some operators
// and as an integer for others; where it has none, a number made of the node's name.

#include "tenon/fnv.hpp"
#include "tenon/sdk/graph.hpp"

namespace tenon {

inline double seed_of_name(std::string_view name) {
  return static_cast<double>(fnv1a(name) >> 11);  // what a double holds
}
inline double seed_of(Node node) {
  tn_any seed = node.attr("seed");
  if (seed.tag == TN_ANY_I64) return static_cast<double>(seed.v.i);
  return seed.tag == TN_ANY_F64 ? seed.v.f : seed_of_name(node.name());
}

}  // namespace tenon
