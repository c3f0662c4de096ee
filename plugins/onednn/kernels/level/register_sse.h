// SPDX-License-Identifier: Apache-2.0
#pragma once
// One register by SSE4.2, the baseline on x86-64; the contract is in simd.h, which includes this
// file.

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "register_parts.h"
#include "vector_types.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

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
static inline Vi truncate_to_int(Vf v) {
  return __builtin_convertvector(v, Vi);
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
static inline void end_streams() {
  _mm_sfence();
}
template <class F>
static inline float fold_lanes(Vf v, F f) {
  v = f(v, _mm_shuffle_ps(v, v, 0x4e));
  return f(v, _mm_shuffle_ps(v, v, 0xb1))[0];
}
static inline uint32_t lanes_not_below(Vf x, Vf least) {
  return static_cast<uint32_t>(_mm_movemask_ps(_mm_cmpge_ps(x, least)));
}

static inline Vi widen_u8(const void* p) {
  int32_t bytes = load_vector<int32_t>(p);
  return reinterpret_cast<Vi>(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}
static inline Vi widen_s8(const void* p) {
  int32_t bytes = load_vector<int32_t>(p);
  return reinterpret_cast<Vi>(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(bytes)));
}
static inline Vi widen_u16(const void* p) {
  return reinterpret_cast<Vi>(_mm_cvtepu16_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))));
}
static inline __m128i low_words(Vi v) {
  __m128i masked = reinterpret_cast<__m128i>(v & 0xffff);
  return _mm_packus_epi32(masked, masked);
}
static inline void narrow_8(void* p, Vi v) {
  __m128i words = low_words(v & 0xff);
  int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::memcpy(p, &bytes, sizeof bytes);
}
static inline void narrow_16(void* p, Vi v) {
  _mm_storel_epi64(static_cast<__m128i*>(p), low_words(v));
}
template <int registers>
static inline void narrow_panel(void* to, const Vi* v) {
  static_assert(registers == 4);
  const __m128i low = _mm_packus_epi32(reinterpret_cast<__m128i>(v[0] & 0xff),
                                       reinterpret_cast<__m128i>(v[1] & 0xff));
  const __m128i high = _mm_packus_epi32(reinterpret_cast<__m128i>(v[2] & 0xff),
                                        reinterpret_cast<__m128i>(v[3] & 0xff));
  const __m128i bytes = _mm_packus_epi16(low, high);
  std::memcpy(to, &bytes, sizeof bytes);
}
// The exponent is moved by a multiplication, which also normalizes denormals.
static inline Vf load_f16(const void* p) {
  Vi half = widen_u16(p);
  Vi magnitude = (half & 0x7fff) << 13;
  Vf value = reinterpret_cast<Vf>(magnitude) * 0x1p112F;
  value = (half & 0x7c00) == 0x7c00 ? reinterpret_cast<Vf>(magnitude | 0x7f800000) : value;
  return reinterpret_cast<Vf>(reinterpret_cast<Vi>(value) | ((half & 0x8000) << 16));
}
static inline void store_f16(void* p, Vf v) {
  Vi u = reinterpret_cast<Vi>(v) & 0x7fffffff;
  Vf a = reinterpret_cast<Vf>(u);
  // Under 2^-14 the addition of 0.5 leaves the rounded denormal in the low bits.
  Vi tiny = reinterpret_cast<Vi>(a + 0.5F) - 0x3f000000;
  Vi normal = (u - 0x38000000 + 0xfff + ((u >> 13) & 1)) >> 13;
  Vi result = a < 0x1p-14F ? tiny : normal;
  result = a >= 65520.0F ? Vi{} + 0x7c00 : result;
  result = a != a ? (Vi{} + 0x7e00) | ((u >> 13) & 0x3ff) : result;
  result |= (reinterpret_cast<Vi>(v) >> 16) & 0x8000;
  narrow_16(p, result);
}

static inline Int16s widen_to_words(const uint8_t* p) {
  return reinterpret_cast<Int16s>(
      _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
static inline Int16s widen_to_words(const int8_t* p) {
  return reinterpret_cast<Int16s>(
      _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
static inline Vi multiply_pairs(Int16s a, Int16s b) {
  return reinterpret_cast<Vi>(
      _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}
static inline Int16s multiply_pairs(Int8s quantized, Int8s signed_ones) {
  return reinterpret_cast<Int16s>(_mm_maddubs_epi16(reinterpret_cast<__m128i>(quantized),
                                                    reinterpret_cast<__m128i>(signed_ones)));
}
static inline Vl multiply_low_halves(Vl a, Vl b) {
  return reinterpret_cast<Vl>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}
static inline Int8s low_int4(Int8s x) {
  return reinterpret_cast<Int8s>(_mm_and_si128(reinterpret_cast<__m128i>(x), _mm_set1_epi8(15)));
}
static inline Int8s high_int4(Int8s x) {
  return reinterpret_cast<Int8s>(
      _mm_and_si128(_mm_srli_epi16(reinterpret_cast<__m128i>(x), 4), _mm_set1_epi8(15)));
}
static inline Int8s bits_of_bytes(Int8s x) {
  const __m128i table = _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  return reinterpret_cast<Int8s>(
      _mm_add_epi8(_mm_shuffle_epi8(table, reinterpret_cast<__m128i>(low_int4(x))),
                   _mm_shuffle_epi8(table, reinterpret_cast<__m128i>(high_int4(x)))));
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
