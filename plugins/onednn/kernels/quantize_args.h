// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the integer kernels, as level/ sees them too; contracts in quantize.h.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// src and dst: [outer, axis, inner] dense; the quantized side is u8 or s8 (i32 for dequantize)
struct QuantizeArgs {
  Source src = {};
  Target dst = {};
  int64_t outer = 1;
  int64_t axis = 1;
  int64_t inner = 1;
  int64_t block = 0;                  // 0: scales [axis]; else [outer, ceil(axis / block), inner]
  const float* scales = nullptr;      // as `block` says; per tensor: axis 1, scales [1]
  const void* zero_points = nullptr;  // like scales, of the quantized type; null: all 0
};

// n elements from `offset` on; scales and zero points from `scale` on, [n] of them or [1].
struct QuantizeRow {
  int64_t offset;
  int64_t n;
  int64_t scale;
  bool per_element;
};

// src: [rows, n] i32 dense -> dst: [rows, n] u8 or s8 dense
struct RequantizeArgs {
  const int32_t* src = nullptr;
  Target dst = {};  // its zero point counts, its scale does not
  int64_t rows = 0;
  int64_t n = 0;
  const float* scales = nullptr;  // [n], or [1] when !per_column
  bool per_column = false;
  const int32_t* bias = nullptr;  // [n], added first; null: none
};

// a, b: [n] u8 or s8 with their quantization -> dst: [n] u8 or s8
struct QuantizedAddArgs {
  Source a = {};
  Source b = {};
  Target dst = {};
  int64_t n = 0;
  bool relu = false;
};

// n bytes of each row; strides in bytes. src may be dst, with the same strides.
struct ByteRows {
  const uint8_t* src = nullptr;
  uint8_t* dst = nullptr;
  int64_t n = 0;
  int64_t rows = 1;
  int64_t src_stride = 0;
  int64_t dst_stride = 0;
};

}  // namespace tenon::onednn::kernels
