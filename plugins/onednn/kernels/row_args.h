// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the kernels that work row by row. Plain structs, as level/ sees them too; contracts
// in softmax.h, norm.h, reduce.h and lrn.h.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// Rows of at most so many elements, and columns in pieces of so many, have a lane each.
constexpr int64_t kSoftmaxNarrow = 16;
constexpr int64_t kSoftmaxColumns = 64;

// src, dst: [dims[0], dims[1], dims[2], n, inner] dense
struct SoftmaxArgs {
  Source src = {};
  Target dst = {};
  int64_t dims[3] = {1, 1, 1};
  int64_t n = 0;
  int64_t inner = 1;             // more than 1: no mask
  float scale = 1.0F;            // of src, before the mask
  Source mask = {};              // added; data null: none
  int64_t mask_strides[4] = {};  // over dims and n, in elements; the last is 0 or 1
  bool log = false;              // LogSoftmax
};

// y, dy, dst: [rows, n] dense
struct SoftmaxGradArgs {
  Source y = {};
  Source dy = {};
  Target dst = {};
  int64_t rows = 0;
  int64_t n = 0;
  float scale = 1.0F;
};

enum class Norm : uint8_t { kLayer, kRms, kL2, kCentre };

// src, residual, sum, dst: [rows, n] dense; gamma, beta: [n] f32; mean, inv_std: [rows] f32
struct NormArgs {
  Norm kind = Norm::kLayer;
  Source src = {};
  Source residual = {};  // added to src in front; data null: none
  Target sum = {};       // where src + residual goes; data null: nowhere
  Target dst = {};
  Target dst2 = {};  // a second form of the result, as u8 beside bf16; data null: none
  const float* gamma = nullptr;
  const float* beta = nullptr;
  const float* factors = nullptr;  // [n], of dst2, or of dst where that is all
  float* mean = nullptr;
  float* inv_std = nullptr;
  int64_t rows = 0;
  int64_t n = 0;
  float epsilon = 0.0F;
};

enum class Reduction : uint8_t { kSum, kMean, kMax, kMin, kSumSquare, kL2, kL1, kProduct, kCount };

// Columns of one piece of work when inner > 1.
constexpr int64_t kReduceBlock = 512;
// Sums of quantized values are of integers where there are so many columns or rows.
constexpr int64_t kInt8Lanes = 32;

// src: [outer, k, inner] dense -> dst: [outer, inner] dense
struct ReduceArgs {
  Reduction kind = Reduction::kSum;
  Source src = {};
  Target dst = {};
  int64_t outer = 0;
  int64_t k = 0;
  int64_t inner = 0;
};

// src -> dst: [outer, channels, inner] dense f32
struct LrnArgs {
  const float* src = nullptr;
  float* dst = nullptr;
  int64_t outer = 0;
  int64_t channels = 0;
  int64_t inner = 0;
  int64_t size = 1;
  float alpha = 0.0F;  // already over size
  float beta = 0.0F;
  float bias = 0.0F;
};

}  // namespace tenon::onednn::kernels
