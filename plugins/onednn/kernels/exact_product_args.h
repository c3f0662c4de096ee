// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one level multiplies of exact_product.h.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// The right operand in panels of two registers: [ceil(columns / panel)][depth][panel], with zeros
// where columns are missing.
struct ExactPack {
  ElementType type = ElementType::kF64;  // or kF32, kI32, kI64: unsigned ones have the same bits
  const void* b = nullptr;
  int64_t b_k = 0, b_column = 0;  // strides, in elements
  int64_t depth = 0, columns = 0;
  void* panels = nullptr;
};

struct ExactBlock {
  ExactPack right;  // without panels it is packed into the room
  const void* a = nullptr;
  int64_t a_row = 0, a_k = 0;
  void* dst = nullptr;
  int64_t dst_row = 0;  // columns lie side by side
  int64_t rows = 0;
  void* room = nullptr;  // kExactRoom bytes, aligned as a register
};

// Of a panel on the widest level.
constexpr int64_t kExactPanelBytes = 128;
// So much of k is multiplied at once: a panel then stays in the first cache, and the rows of a
// block in the second.
constexpr int64_t kExactDepth = 256;
constexpr int64_t kExactRows = 192;
constexpr int64_t kExactRoom = kExactDepth * (kExactPanelBytes + kExactRows * 8);

// That the panels take on any level.
constexpr int64_t exact_panels_bytes(ElementType type, int64_t depth, int64_t columns) {
  const int64_t bytes = columns * element_bytes(type);
  return (bytes + kExactPanelBytes - 1) / kExactPanelBytes * kExactPanelBytes * depth;
}

}  // namespace tenon::onednn::kernels
