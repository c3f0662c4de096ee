// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the two forms of MatMulInteger share: oneDNN's and that of our own kernel.

#include "choice.hpp"

namespace tenon::onednn {

// A zero point when a step runs: u8 or s8; 0 where there is none (nullptr).
inline int32_t zero_point_at(const void* data, ElementType type) {
  if (data == nullptr) return 0;
  return type == ElementType::kS8 ? *static_cast<const int8_t*>(data)
                                  : *static_cast<const uint8_t*>(data);
}

struct IntegerSite {
  Lowering& lowering;
  int index;
};
// In our own kernel, where oneDNN's sums would saturate.
Offer offer_int8_matmul_integer(const IntegerSite& site);

}  // namespace tenon::onednn
