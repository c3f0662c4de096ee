// SPDX-License-Identifier: Apache-2.0
#pragma once
// One vector register of the level that this file is compiled for, on GCC's vector extension: + - *
// / comparisons and `mask ? a : b` are the language's own. What they cannot say is in one file per
// instruction set, register_<set>.h, each with the same functions (all that a new set has to
// bring):
//
//   round_even, floor, ceil, trunc, sqrt, fma     of f32; round_even and fma of f64 too
//   truncate_to_int, round_to_int     towards zero, to nearest even; outside of int32, and of NaN,
//                                     the result is INT32_MIN
//   stream, end_streams     a store past the caches, of an aligned register; the fence behind them
//   fold_lanes(v, f)        f over all lanes: halves, then halves of these, down to one
//   lanes_not_below(x, least)     bit i: x[i] >= least[i]
//   load_part, store_part   the first n lanes (0 <= n <= kLanes) from and to memory, of which
//   nothing
//                           else is read or written; the other lanes of a load are `fill`
//   keep_part(v, n, fill)   the first n lanes, and `fill` in the others
//   widen_u8, widen_s8, widen_u16     kLanes narrow integers from memory as 32 bits
//   narrow_8, narrow_16, narrow_panel     the low bits of each lane (of `registers` registers)
//   load_f16, store_f16     kLanes halves; to nearest even, denormals kept
//   widen_to_words          half a register of 8-bit integers as 16 bits
//   multiply_pairs(Int16s, Int16s)     a[2i] b[2i] + a[2i+1] b[2i+1] as i32
//   multiply_pairs(Int8s, Int8s)       the same of u8 and s8 as i16; sums beyond 16 bits are not
//                                      defined
//   multiply_low_halves(Vl, Vl)     the product of the low halves of each lane, without signs
//   low_int4, high_int4     the halves of each byte
//   bits_of_bytes           how many bits of each byte are set
//
// Everything lives in the level's namespace, and level sources include no header that defines
// inline functions elsewhere: a function shared between levels could be linked in its AVX-512 form.

#include <cstdint>
#include <cstring>

#include "../types.h"
#include "vector_types.h"

#if defined(__AVX512F__)
#include "register_avx512.h"
#elif defined(__AVX2__)
#include "register_avx2.h"
#elif defined(__ARM_NEON)
#include "register_neon.h"
#else
#include "register_sse.h"
#endif

namespace tenon::onednn::kernels::TENON_LEVEL {

static inline Vf load(const float* p) {
  Vf v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
static inline void store(float* p, Vf v) {
  std::memcpy(p, &v, sizeof v);
}
static inline Vf splat(float x) {
  return x - Vf{};
}
static inline Vi splat_i(int32_t x) {
  return x - Vi{};
}
static inline Vi bits(Vf v) {
  return reinterpret_cast<Vi>(v);
}
static inline Vf from_bits(Vi v) {
  return reinterpret_cast<Vf>(v);
}
static inline Vf to_float(Vi v) {
  return __builtin_convertvector(v, Vf);
}
// A NaN in either operand gives NaN, as NumPy's maximum and ONNX Max.
static inline Vf max_nan(Vf a, Vf b) {
  return ((a > b) | (a != a)) ? a : b;
}
static inline Vf min_nan(Vf a, Vf b) {
  return ((a < b) | (a != a)) ? a : b;
}
// One instruction each; a NaN in `a` gives b. For values that are known to be numbers, or
// saturation.
static inline Vf max_fast(Vf a, Vf b) {
  return a > b ? a : b;
}
static inline Vf min_fast(Vf a, Vf b) {
  return a < b ? a : b;
}
static inline Vf absolute(Vf a) {
  return from_bits(bits(a) & 0x7fffffff);
}
// |a| with the sign of s.
static inline Vf copy_sign(Vf a, Vf s) {
  return from_bits((bits(a) & 0x7fffffff) | (bits(s) & INT32_MIN));
}

static inline float sum_lanes(Vf v) {
  return fold_lanes(v, [](Vf a, Vf b) { return a + b; });
}
static inline float max_lanes(Vf v) {
  return fold_lanes(v, [](Vf a, Vf b) { return max_nan(a, b); });
}
// Sums of 16-bit pairs, and of four bytes without a sign.
static inline Vi join_words(Int16s words) {
  return multiply_pairs(words, Int16s{} + int16_t{1});
}
static inline Vi join_bytes(Int8s bytes) {
  return join_words(multiply_pairs(bytes, Int8s{} + int8_t{1}));
}

static inline Vf reversed(Vf v) {
  Vi order;
  for (int i = 0; i < kLanes; ++i)
    order[i] = kLanes - 1 - i;
  return __builtin_shuffle(v, order);
}

// Of 32 numbers the one that the low five bits of each lane name.
static inline Vf pick_of_32(const float* numbers, Vi at) {
  if constexpr (2 * kLanes == 32)
    return __builtin_shuffle(load(numbers), load(numbers + kLanes), at);
  Vf picked = {};
  for (int i = 0; i < kLanes; ++i)
    picked[i] = numbers[at[i] & 31];
  return picked;
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
