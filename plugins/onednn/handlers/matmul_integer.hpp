// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the two forms of MatMulInteger share: oneDNN's and that of our own kernel.

#include "handlers.hpp"

namespace tenon::onednn {

// A zero point when a step runs: u8 or s8; 0 where there is none (nullptr).
inline int32_t zero_point_at(const void* data, ElementType type) {
  if (data == nullptr) return 0;
  return type == ElementType::kS8 ? *static_cast<const int8_t*>(data)
                                  : *static_cast<const uint8_t*>(data);
}

// In our own kernel; false, and nothing done, where oneDNN's sums are exact.
bool lower_code_matmul_integer(Lowering& lowering, int node);

}  // namespace tenon::onednn
