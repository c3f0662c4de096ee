// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one level multiplies of exact_product.h.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// Strides are in elements.
struct ExactBlock {
  ElementType type = ElementType::kF64;  // or kI32, kI64: unsigned ones have the same bits
  const void* a = nullptr;
  int64_t a_row = 0, a_k = 0;
  const void* b = nullptr;
  int64_t b_k = 0, b_column = 0;
  void* dst = nullptr;
  int64_t dst_row = 0;  // columns lie side by side
  int64_t rows = 0, columns = 0, depth = 0;
  void* room = nullptr;  // kExactRoom bytes, aligned as a register
};

// So much of k is multiplied at once: a panel of two registers then stays in the first cache.
constexpr int64_t kExactDepth = 128;
constexpr int64_t kExactRoom = kExactDepth * 2 * 64;

}  // namespace tenon::onednn::kernels
