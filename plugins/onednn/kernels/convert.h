// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of any element type to f32 and back: the edges of all other kernels (level/convert.cpp).
//
//   table.load_f32(src, offset, n, dst)              dst[i] = src[offset + i]
//   table.load_strided(src, offset, stride, n, dst)  dst[i] = src[offset + i * stride]
//   table.load_grid(src, grid, dst)                  rows, one behind the other
//   table.store_f32(src, n, dst, offset, stream)     dst[offset + i] = src[i]
//   table.pair_bf16(low, high, n, dst)               dst[i] = low[i] and, above, high[i], both in
//   bf16
//
// Offsets and strides count elements. No alignment is required, no byte outside of the n elements
// is touched. u8 and s8 with Quant.scale != 0 are dequantized, or quantized as ONNX has it:
// saturate(round_half_even(x / scale) + zero_point). Else integers are numbers: stores truncate
// towards zero. Beyond the type, u8 and s8 saturate, and NaN becomes the lowest value; i32 and i64
// become the lowest value, as in tenon/whole.hpp. i32 and i64 are exact up to 2^24. bool loads as 0
// or 1 and stores x != 0 (NaN is true). bf16 and f16 round to nearest even.
// `stream` writes f32 past the caches; for data larger than they are.

#include "kernel_table.h"
