// SPDX-License-Identifier: Apache-2.0
#pragma once
// What becomes of the sums of a product before they are stored, as level/ and amx/ see it too:
//   y = sum * scales[n] + bias[n], then each op in turn, then clip(y, low, high), then the result's
//   type: u8 and s8 are saturate(round(y) + zero_point), so scales, bias and bounds are divided by
//   the result's scale.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// The first seven as oneDNN's algorithms of these names say it.
struct EpilogueOp {
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
    kAdd,        // y + alpha other
    kMul,        // y other
    kShortGelu,  // alpha GeluErf(y) within 1e-4 alpha: for results whose steps are much larger
    kTableGelu,  // alpha GeluErf(y), times other if there is one, within 2.5e-6 |alpha other|
  };
  Kind kind = Kind::kLinear;
  float alpha = 0;
  float beta = 0;
  Source other = {};          // kF32, kBf16, kU8, kS8: at the result's first row and column
  int64_t row_stride = 0;     // of `other`, in elements; 0 broadcasts
  int64_t column_stride = 0;  // 0 or 1
};
constexpr int kMostEpilogueOps = 10;

// Where a product's result goes, and what becomes of it on the way: the last of its arguments.
struct ProductResult {
  Target dst = {};
  int64_t dst_stride = 0;         // elements between rows
  const float* scales = nullptr;  // one for each column, columns rounded up to whole panels
  const float* bias = nullptr;    // likewise
  float low = -__builtin_inff();
  float high = __builtin_inff();
  const EpilogueOp* ops = nullptr;  // [n_ops], at most kMostEpilogueOps
  int n_ops = 0;
};

// Of one block of a result: scales, bias and dst are at its first row and column.
struct Epilogue : ProductResult {
  int64_t columns = 0;       // of the block; its last panel may have fewer than a whole one
  int64_t first_row = 0;     // of the result, for `other`
  int64_t first_column = 0;  // likewise
};

}  // namespace tenon::onednn::kernels
