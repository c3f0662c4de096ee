// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of row_product.h, as level/ sees them too.

#include <cstdint>

namespace tenon::onednn::kernels {

// One row times one matrix: dst[n] = sum of a[k * a_k] * b[k * b_k + n * b_column] over k. Either
// b_column is 1, or b_k and a_k are.
struct RowProductPiece {
  const float* a = nullptr;
  const float* b = nullptr;
  float* dst = nullptr;
  int64_t k = 0, n = 0;
  int64_t a_k = 1, b_k = 1, b_column = 1;
};

}  // namespace tenon::onednn::kernels
