// SPDX-License-Identifier: Apache-2.0
#pragma once
// The seed of an operator that draws: its attribute, which ONNX keeps as a float for some operators
// and as an integer for others; where it has none, a number made of the node's name.

#include "tenon/sdk/graph.hpp"

namespace tenon {

inline double seed_of_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return static_cast<double>(hash >> 11);  // what a double holds
}
inline double seed_of(Node node) {
  tn_any seed = node.attr("seed");
  if (seed.tag == TN_ANY_I64) return static_cast<double>(seed.v.i);
  return seed.tag == TN_ANY_F64 ? seed.v.f : seed_of_name(node.name());
}

}  // namespace tenon
