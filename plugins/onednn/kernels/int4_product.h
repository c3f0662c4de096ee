// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of real rows with weights of 4 bits that share scales by groups along k: ONNX's blocked
// DequantizeLinear in front of a MatMul, ONNX Runtime's MatMulNBits. Weights are read packed and
// are never written as floats: with few rows the time is that of their bytes.
//
//   w[k, n] = (q_w[k, n] - zero[k / group, n]) * scale[k / group, n]        q_w 0 to 15
//   f32:    y[m, n] = sum_g scale[g, n] * (sum_{k in g} a[m, k] * (q_w[k, n] - zero[g, n]))
//           in f32, fused multiply-add where the CPU has it
//   quantized values:  q[m, k] = round(a[m, k] / s[m, g]),  s[m, g] = max_{k in g} |a[m, k]| / 127
//           y[m, n] = sum_g scale[g, n] * s[m, g] * (sum_{k in g} q[m, k] * (q_w - zero))
//           the inner sum exact in i32, the outer one in f32
//   then the epilogue of epilogue_args.h.
//
// Bounds, against exact arithmetic, eps = 2^-24, without the epilogue:
//   reals:  (group + n_groups + 2) eps sum_k |a| |w|
//   quantized values:  sum_g s[m, g] / 2 * sum_{k in g} |w[k, n]|  +  (n_groups + 8) eps sum_k |a|
//   |w|
// Reals follow IEEE 754 in NaN and infinity. With quantized values a group of a row that holds
// either makes the row's results NaN; one whose numbers are all under 2^-120 counts as zeros. The
// result does not depend on the number of threads; the left operand, or weights, of a row never
// change another's.

#include "context.h"
#include "int4_product_args.h"

namespace tenon::onednn::kernels {

// dst: kF32, kBf16, kU8, kS8.
struct Int4ProductArgs : ProductResult {
  Source a = {};         // kF32 or kBf16: [m, k]
  int64_t a_stride = 0;  // elements between rows
  int64_t m = 0, n = 0, k = 0;
  Int4Panels b = {};
  bool as_int8 = false;     // the left operand in 8 bits
  bool with_vnni = true;    // where the CPU has it; the results are the same
  void* scratch = nullptr;  // int4_scratch_bytes, aligned to 64 bytes
};

constexpr int64_t int4_columns(int64_t n) {
  return (n + kInt4Panel - 1) / kInt4Panel * kInt4Panel;
}
constexpr int64_t int4_groups(int64_t k, int64_t group) {
  return (k + group - 1) / group;
}
constexpr bool takes_int4_group(int64_t group) {
  return group >= 16 && group % 16 == 0;
}
constexpr int64_t int4_packed_bytes(int64_t k, int64_t n, int64_t group) {
  return int4_columns(n) * int4_groups(k, group) * group / 2;
}
constexpr int64_t int4_scratch_bytes(int64_t m, int64_t k, int64_t group, bool as_int8) {
  const int64_t padded = int4_groups(k, group) * group;
  return as_int8 ? m * padded + 2 * m * int4_groups(k, group) * 4 : m * padded * 4;
}

// Where quantized values lie before they are packed: that of (k, n) is nibble k * k_stride + n *
// n_stride, the low half of a byte first. flip: 8 for quantized values with a sign, which are
// shifted by 8.
struct Int4Values {
  const uint8_t* data = nullptr;
  int64_t k_stride = 0;
  int64_t n_stride = 0;
  uint8_t flip = 0;

  uint8_t at(int64_t k, int64_t n) const {
    const int64_t place = k * k_stride + n * n_stride;
    return static_cast<uint8_t>((data[place / 2] >> (place % 2 * 4) & 15) ^ flip);
  }
};
// What is not there becomes the quantized value 8.
void pack_int4(const Int4Values& b, int64_t k, int64_t n, int64_t group, uint8_t* packed);

// group: takes_int4_group(). k, n, m of 0 give what an empty sum gives.
void int4_product(const Context& context, const Int4ProductArgs& args);

}  // namespace tenon::onednn::kernels
