// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the kernels that move elements, as level/ sees them too; contract in copy.h.

#include <cstdint>

namespace tenon::onednn::kernels {

constexpr int64_t kCopyMaxRank = 8;

// dst[sum i_d * dst_strides[d]] = src[sum i_d * src_strides[d]]; strides in elements
struct StridedCopy {
  const void* src = nullptr;
  void* dst = nullptr;
  int64_t element_bytes = 4;  // 1, 2, 4 or 8
  int64_t rank = 0;
  int64_t dims[kCopyMaxRank] = {};
  int64_t src_strides[kCopyMaxRank] = {};
  int64_t dst_strides[kCopyMaxRank] = {};
};

// src: [rows, cols], cols contiguous -> dst: [cols, rows], rows contiguous; strides of the other
// axis
struct TransposeTile {
  const void* src;
  void* dst;
  int64_t src_stride;
  int64_t dst_stride;
  int64_t rows;
  int64_t cols;
  int64_t element_bytes;
};

}  // namespace tenon::onednn::kernels
