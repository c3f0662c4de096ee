// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of 8-bit quantized values for CPUs without VNNI. What these have for bytes (vpmaddubsw)
// adds pairs of products in 16 bits and saturates: 255 * 127 + 255 * 127 becomes 32767. Here both
// operands are widened to 16 bits, and vpmaddwd adds pairs in 32 bits, which is exact; on CPUs that
// execute two of either in a cycle it costs no more.
//
//   sum  = sum_k (a[m, k] - a.zero) * (b[k, n] - b_zero)          in i32, wraps as ONNX says
//   i32:      y = sum
//   f32:      y = clip(sum * scales[n] + bias[n], low, high)
//   u8, s8:   y = saturate(round(clip(sum * scales[n] + bias[n], low, high)) +
//   dst.quant.zero_point)
//
// For quantized values the scales and the bias are those of the result's steps: divided by its
// scale. The left operand's rows are those of a matrix, or what a convolution's window sees at each
// place of a channels-last image; outside of the image is the zero point.

#include "context.h"
#include "int8_product_args.h"
#include "windows.h"

namespace tenon::onednn::kernels {

// A row is widened on the stack: k may not be larger.
constexpr int64_t kMostInt8Depth = 32768;

struct Int8Rows {
  const uint8_t* quantized = nullptr;
  bool is_signed = false;
  int32_t zero = 0;
  int64_t stride = 0;  // quantized values from one row to the next, where there are no windows
  bool has_windows = false;
  ConvWindows windows = {};
};

// dst: kF32, kI32, kU8, kS8; scales and bias are not read for i32.
struct Int8ProductArgs : ProductResult {
  Int8Rows a;
  const int8_t* b = nullptr;  // packed
  int32_t b_zero = 0;
  int64_t m = 0, n = 0, k = 0;
};

constexpr int64_t packed_columns(int64_t n) {
  return (n + kInt8Panel - 1) / kInt8Panel * kInt8Panel;
}
constexpr int64_t packed_int8_bytes(int64_t k, int64_t n) {
  return packed_columns(n) * ((k + 1) / 2 * 2);
}
// b: element [k, n] at b[k * k_stride + n * n_stride]. flip: 0x80 for unsigned quantized values,
// whose zero point is then 128 less. Columns and the odd k that are not there are zero.
void pack_int8(const uint8_t* b,
               int64_t k_stride,
               int64_t n_stride,
               int64_t k,
               int64_t n,
               uint8_t flip,
               int8_t* packed);

void int8_product(const Context& context, const Int8ProductArgs& args);

}  // namespace tenon::onednn::kernels
