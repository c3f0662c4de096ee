// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of products of f32 numbers, as level/ sees them too; contract in float_product.h.

#include <cstdint>

#include "epilogue_args.h"

namespace tenon::onednn::kernels {

// Some rows times one panel.
struct FloatBlock {
  const float* rows = nullptr;  // [n_rows, depth]
  int64_t row_stride = 0;       // elements
  int64_t n_rows = 0;
  int64_t depth = 0;
  const float* panel = nullptr;  // [depth][columns of a panel]
  Epilogue epilogue = {};
};

}  // namespace tenon::onednn::kernels
