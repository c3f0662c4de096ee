// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers of the plain kernels: a splitmix64 stream (Steele et al., OOPSLA 2014), seeded by
// the node's attribute, or by its name, so that runs repeat.

#include <bit>
#include <cmath>

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  static Random of_node(Node node) {
    tn_any seed = node.attr("seed");
    if (seed.tag == TN_ANY_I64) return Random(static_cast<uint64_t>(seed.v.i));
    if (seed.tag == TN_ANY_F64) return Random(std::bit_cast<uint64_t>(seed.v.f));
    uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
    for (char c : node.name())
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    return Random(hash);
  }
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // 0 <= u < 1
  double normal() {                                                         // Box and Muller (1958)
    double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace tenon::ops
