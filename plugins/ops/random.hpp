// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers of the plain kernels: the host's counter-based generator, so that every backend
// that asks for number i of a node gets the same one. Runs repeat.

#include <bit>

#include "tenon/sdk/draws.hpp"
#include "tenon/sdk/role/op.hpp"

namespace tenon::ops {

class Random {
 public:
  Random(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}
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
