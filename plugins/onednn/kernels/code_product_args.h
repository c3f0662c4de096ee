// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of products of 8-bit codes, as level/ sees them too; contract in code_product.h.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// The right operand lies in panels of so many columns: [panels][pairs of k][column][2].
constexpr int64_t kCodePanel = 16;

// What happens to a scaled sum before it is stored; the first seven as oneDNN's algorithms of these
// names say it.
struct CodeTailOp {
  enum class Kind : uint8_t {
    kClip,         // alpha <= y <= beta
    kLeakyRelu,    // alpha y under 0
    kLinear,       // alpha y + beta
    kHardSigmoid,  // clip(alpha y + beta, 0, 1)
    kHardSwish,    // y clip(alpha y + beta, 0, 1)
    kSwish,        // y sigmoid(alpha y)
    kSigmoid,
    kTanh,
    kGeluErf,
    kGeluTanh,
    kAdd,  // y + other
    kMul,  // y other
  };
  Kind kind = Kind::kLinear;
  float alpha = 0;
  float beta = 0;
  Source other = {};          // kF32, kU8, kS8: at the result's first row and column
  int64_t row_stride = 0;     // of `other`, in elements; 0 broadcasts
  int64_t column_stride = 0;  // 0 or 1
};
constexpr int kMostCodeTailOps = 10;

// Rows of the left operand as 16-bit numbers, less their zero point, times some panels.
struct CodeBlock {
  const int16_t* rows = nullptr;  // [n_rows, 2 * pairs]
  int64_t n_rows = 0;
  int64_t pairs = 0;
  const int8_t* panels = nullptr;
  int64_t columns = 0;                  // of the result; the last panel may have fewer than 16
  const int32_t* row_shifts = nullptr;  // [n_rows], added to the sums
  const float* scales = nullptr;        // [columns rounded up to panels]
  const float* bias = nullptr;          // likewise
  Target dst;                           // at the block's first row and column
  int64_t dst_stride = 0;               // elements between rows
  float low = 0;
  float high = 0;
  const CodeTailOp* ops = nullptr;
  int n_ops = 0;
  int64_t first_row = 0;     // of the result, for `other`
  int64_t first_column = 0;  // likewise
};

}  // namespace tenon::onednn::kernels
