// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers of the plain kernels: the host's counter-based generator, so that every backend
// that asks for number i of a node gets the same one. Runs repeat.

#include <bit>

#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}
  // Seeded by the node's attribute, which ONNX keeps as a float for some operators and as an
  // integer for others; by its name where it has none.
  static double seed_of(Node node) {
    tn_any seed = node.attr("seed");
    if (seed.tag == TN_ANY_I64) return static_cast<double>(seed.v.i);
    if (seed.tag == TN_ANY_F64) return seed.v.f;
    uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
    for (char c : node.name())
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    return static_cast<double>(hash >> 11);  // what a double holds
  }
  static Random of_node(Node node) { return {std::bit_cast<uint64_t>(seed_of(node)), 0}; }
  // Numbers first..first+n of the stream.
  std::vector<double> uniform(uint64_t first, int64_t n) const {  // 0 <= u < 1
    std::vector<double> out(static_cast<size_t>(n));
    services.random->uniform(seed_, stream_, first, out.data(), out.size());
    return out;
  }
  std::vector<double> normal(uint64_t first, int64_t n) const {
    std::vector<double> out(static_cast<size_t>(n));
    services.random->normal(seed_, stream_, first, out.data(), out.size());
    return out;
  }

 private:
  uint64_t seed_, stream_;
};

}  // namespace tenon::ops
