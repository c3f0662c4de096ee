// SPDX-License-Identifier: Apache-2.0
#pragma once
// QuantizeLinear and DequantizeLinear: pointwise nodes whose scales broadcast along one axis, so
// that they join the groups around them.

#include <string>
#include <vector>

#include "graph.hpp"

namespace tenon::cuda {

constexpr uint32_t kF8E4M3 = TN_DTYPE(kDLFloat8_e4m3fn, 8);
constexpr uint32_t kF8E5M2 = TN_DTYPE(kDLFloat8_e5m2, 8);
inline bool is_float8(uint32_t dtype) {
  return dtype == kF8E4M3 || dtype == kF8E5M2;
}

// Gives such a node its program and the shapes of its scales, or says in `unbound` why not; leaves
// others alone.
void bind_quantization(const Imported& graph, NodeInfo* node);

// What a DequantizeLinear node with constant parameters stands for.
struct QuantParams {
  std::vector<float> scales;   // one, or one for each index of `axis`
  std::vector<int64_t> zeros;  // as many, or one
  size_t axis = 0;
};
// Empty: it has them; else why not.
std::string read_params(const Imported& graph, const NodeInfo& node, QuantParams* out);

}  // namespace tenon::cuda
