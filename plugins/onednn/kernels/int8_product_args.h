// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of products of 8-bit quantized values, as level/ sees them too; contract in
// int8_product.h.

#include <cstdint>

#include "epilogue_args.h"

namespace tenon::onednn::kernels {

// The right operand lies in panels of so many columns: [panels][pairs of k][column][2].
constexpr int64_t kInt8Panel = 16;

// Rows of the left operand as 16-bit numbers, less their zero point, times some panels.
struct Int8Block {
  const int16_t* rows = nullptr;  // [n_rows, 2 * pairs]
  int64_t n_rows = 0;
  int64_t pairs = 0;
  const int8_t* panels = nullptr;
  const int32_t* row_shifts = nullptr;  // [n_rows], added to the sums
  Epilogue epilogue = {};
};

}  // namespace tenon::onednn::kernels
