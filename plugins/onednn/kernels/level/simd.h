// SPDX-License-Identifier: Apache-2.0
#pragma once
// One vector register of the level that this file is compiled for, on GCC's vector extension: + - *
// / comparisons and `mask ? a : b` are the language's own, this file adds the rest. Everything
// lives in the level's namespace, and level sources include no header that defines inline functions
// elsewhere: a function shared between levels could be linked in its AVX-512 form.

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "../types.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLanes = kVectorBytes / 4;      // f32 lanes
constexpr int kHalfLanes = kVectorBytes / 8;  // f64 lanes

using Vf = float __attribute__((vector_size(kVectorBytes)));
using Vi = int32_t __attribute__((vector_size(kVectorBytes)));
using Vu = uint32_t __attribute__((vector_size(kVectorBytes)));
using Vd = double __attribute__((vector_size(kVectorBytes)));
using Vl = int64_t __attribute__((vector_size(kVectorBytes)));
// kLanes or kHalfLanes elements of a narrower or wider type.
template <class T, int n>
struct VectorOf {
  typedef T Type __attribute__((vector_size(sizeof(T) * n)));
};
template <class T>
using Lanes = typename VectorOf<T, kLanes>::Type;
template <class T>
using HalfLanes = typename VectorOf<T, kHalfLanes>::Type;

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
// Towards zero; outside of int32 the result is INT32_MIN.
static inline Vi truncate_to_int(Vf v) {
  return __builtin_convertvector(v, Vi);
}

#if defined(__AVX512F__)
static inline Vf round_even(Vf x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline Vf floor(Vf x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
static inline Vf ceil(Vf x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
static inline Vf trunc(Vf x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline Vd round_even(Vd x) {
  return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline Vf sqrt(Vf x) {
  return _mm512_sqrt_ps(x);
}
static inline Vi round_to_int(Vf x) {
  return reinterpret_cast<Vi>(_mm512_cvtps_epi32(x));
}
static inline Vf fma(Vf a, Vf b, Vf c) {
  return _mm512_fmadd_ps(a, b, c);
}
static inline Vd fma(Vd a, Vd b, Vd c) {
  return _mm512_fmadd_pd(a, b, c);
}
static inline void stream(float* p, Vf v) {
  _mm512_stream_ps(p, v);
}
#elif defined(__AVX2__)
static inline Vf round_even(Vf x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline Vf floor(Vf x) {
  return _mm256_floor_ps(x);
}
static inline Vf ceil(Vf x) {
  return _mm256_ceil_ps(x);
}
static inline Vf trunc(Vf x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline Vd round_even(Vd x) {
  return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline Vf sqrt(Vf x) {
  return _mm256_sqrt_ps(x);
}
static inline Vi round_to_int(Vf x) {
  return reinterpret_cast<Vi>(_mm256_cvtps_epi32(x));
}
static inline Vf fma(Vf a, Vf b, Vf c) {
  return _mm256_fmadd_ps(a, b, c);
}
static inline Vd fma(Vd a, Vd b, Vd c) {
  return _mm256_fmadd_pd(a, b, c);
}
static inline void stream(float* p, Vf v) {
  _mm256_stream_ps(p, v);
}
#else
static inline Vf round_even(Vf x) {
  return _mm_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline Vf floor(Vf x) {
  return _mm_floor_ps(x);
}
static inline Vf ceil(Vf x) {
  return _mm_ceil_ps(x);
}
static inline Vf trunc(Vf x) {
  return _mm_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
static inline Vd round_even(Vd x) {
  return _mm_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline Vf sqrt(Vf x) {
  return _mm_sqrt_ps(x);
}
static inline Vi round_to_int(Vf x) {
  return reinterpret_cast<Vi>(_mm_cvtps_epi32(x));
}
static inline Vf fma(Vf a, Vf b, Vf c) {
  return a * b + c;
}
static inline Vd fma(Vd a, Vd b, Vd c) {
  return a * b + c;
}
static inline void stream(float* p, Vf v) {
  _mm_stream_ps(p, v);
}
#endif

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

// f over all lanes: halves, then halves of these, down to one.
#if defined(__AVX512F__)
template <class F>
static inline float fold_lanes(Vf v, F f) {
  v = f(v, _mm512_maskz_shuffle_f32x4(0xffff, v, v, 0x4e));
  v = f(v, _mm512_maskz_shuffle_f32x4(0xffff, v, v, 0xb1));
  v = f(v, _mm512_maskz_permute_ps(0xffff, v, 0x4e));
  return f(v, _mm512_maskz_permute_ps(0xffff, v, 0xb1))[0];
}
#elif defined(__AVX2__)
template <class F>
static inline float fold_lanes(Vf v, F f) {
  v = f(v, _mm256_permute2f128_ps(v, v, 1));
  v = f(v, _mm256_permute_ps(v, 0x4e));
  return f(v, _mm256_permute_ps(v, 0xb1))[0];
}
#else
template <class F>
static inline float fold_lanes(Vf v, F f) {
  v = f(v, _mm_shuffle_ps(v, v, 0x4e));
  return f(v, _mm_shuffle_ps(v, v, 0xb1))[0];
}
#endif
static inline float sum_lanes(Vf v) {
  return fold_lanes(v, [](Vf a, Vf b) { return a + b; });
}
static inline float max_lanes(Vf v) {
  return fold_lanes(v, [](Vf a, Vf b) { return max_nan(a, b); });
}
// The first n lanes (0 <= n < kLanes) from memory, the others `fill`; nothing else is read.
static inline Vf load_part(const float* p, int64_t n, float fill) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i)
    lanes[i] = i < n ? p[i] : fill;
  return load(lanes);
}
static inline void store_part(float* p, Vf v, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    p[i] = v[i];
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
