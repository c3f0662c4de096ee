// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of products of signs, as level/ sees them too; contract in binary_product.h.

#include <cstdint>

#include "epilogue_args.h"

namespace tenon::onednn::kernels {

// The right operand lies in panels of so many columns: [panels][words][column], 32 signs a word.
constexpr int64_t kBinaryPanel = 16;
constexpr int64_t kSignsOfWord = 32;

// Rows of signs times some panels.
struct BinaryBlock {
  const uint32_t* rows = nullptr;  // [n_rows, words]
  int64_t n_rows = 0;
  int64_t words = 0;
  const uint32_t* panels = nullptr;
  const int32_t* const* shifts = nullptr;  // of each row: [columns rounded up to panels]
  bool has_popcount = false;               // AVX512_VPOPCNTDQ, at the level AVX-512
  Epilogue epilogue = {};
};

// Bit c % 32 of word c / 32 is set where src[row, c] >= thresholds[c]; not set for NaN and behind
// the last channel.
struct SignsArgs {
  const float* src = nullptr;         // [rows, channels]
  int64_t src_stride = 0;             // elements between rows
  const float* thresholds = nullptr;  // [channels]
  int64_t channels = 0;
  uint32_t* dst = nullptr;  // [rows, words]
};

}  // namespace tenon::onednn::kernels
