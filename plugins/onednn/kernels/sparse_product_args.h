// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of products with weights that are mostly zeros, as level/ sees them too; contract in
// sparse_product.h.

#include <cstdint>

#include "epilogue_args.h"

namespace tenon::onednn::kernels {

constexpr int64_t kSparsePanel = 16;      // columns whose results are stored together
constexpr int64_t kSparseGroup = 16;      // rows: their numbers of one step of k lie side by side
constexpr int64_t kMostSparsePanels = 4;  // that are multiplied in turns
constexpr int64_t kMostSparseGroups = 4;  // that are multiplied at once
constexpr int64_t kSparseFour = 4;  // of k in one step, where operands are 8-bit quantized values

// So many steps of 64 rows stay in the first cache (32 KiB) while the columns of some panels are
// summed up over them.
constexpr int64_t kSparseSpan = 128;

// The right operand: what of it is not zero, in blocks of one step of k and `width` columns, span
// of steps by span, in each of these stripe (`width` columns) by stripe.
struct SparseColumns {
  const uint32_t* starts = nullptr;  // [spans][stripes], and the end: the first block
  const uint16_t* steps = nullptr;   // [blocks]: which step of k, rising within a stripe
  const void* numbers = nullptr;     // [blocks][width] f32, or [blocks][width][4] s8
  const int32_t* sums = nullptr;     // quantized values: [panels][16], the sum of each column
  int64_t width = 1;                 // 1, 4 or kSparsePanel
  int64_t stripes = 0;
  int64_t spans = 0;
};

// Some rows of the left operand, at most kSparseGroup, to where products read them.
struct SparseLeft {
  const char* rows[kSparseGroup] = {};  // of `type`
  int64_t n_rows = 0;                   // those that are not there become zeros
  int64_t k = 0;
  ElementType type = ElementType::kF32;  // or kBf16; kU8, kS8: quantized values
  void* to = nullptr;  // [steps][stride] of 4 bytes; s8 quantized values become u8, 128 more
  int64_t stride = 0;
};

// Rows times at most kMostSparsePanels panels.
struct SparseBlock {
  const void* left = nullptr;  // [steps][n_groups * kSparseGroup] of 4 bytes
  int64_t n_groups = 0;
  int64_t n_rows = 0;
  SparseColumns right = {};
  int64_t panel = 0;
  int64_t n_panels = 1;
  int32_t zero = 0;  // of the left quantized values
  Epilogue epilogue = {};
};

}  // namespace tenon::onednn::kernels
