// SPDX-License-Identifier: Apache-2.0
#pragma once
// One register by AVX-512 (F, BW, DQ, VL); the contract is in simd.h, which includes this file.

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "vector_types.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

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
static inline Vi truncate_to_int(Vf v) {
  return __builtin_convertvector(v, Vi);
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
static inline void end_streams() {
  _mm_sfence();
}
template <class F>
static inline float fold_lanes(Vf v, F f) {
  v = f(v, _mm512_maskz_shuffle_f32x4(0xffff, v, v, 0x4e));
  v = f(v, _mm512_maskz_shuffle_f32x4(0xffff, v, v, 0xb1));
  v = f(v, _mm512_maskz_permute_ps(0xffff, v, 0x4e));
  return f(v, _mm512_maskz_permute_ps(0xffff, v, 0xb1))[0];
}
static inline __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>((1U << n) - 1);
}
static inline Vf load_part(const float* p, int64_t n, float fill) {
  return _mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_lanes(n), p);
}
static inline void store_part(float* p, Vf v, int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), v);
}
static inline Vf keep_part(Vf v, int64_t n, float fill) {
  return _mm512_mask_mov_ps(_mm512_set1_ps(fill), first_lanes(n), v);
}
static inline uint32_t lanes_not_below(Vf x, Vf least) {
  return _mm512_cmp_ps_mask(x, least, _CMP_GE_OQ);
}

static inline Vi widen_u8(const void* p) {
  return reinterpret_cast<Vi>(_mm512_cvtepu8_epi32(load_vector<__m128i>(p)));
}
static inline Vi widen_s8(const void* p) {
  return reinterpret_cast<Vi>(_mm512_cvtepi8_epi32(load_vector<__m128i>(p)));
}
static inline Vi widen_u16(const void* p) {
  return reinterpret_cast<Vi>(_mm512_cvtepu16_epi32(load_vector<__m256i>(p)));
}
static inline void narrow_8(void* p, Vi v) {
  __m128i bytes = _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v));
  std::memcpy(p, &bytes, sizeof bytes);
}
static inline void narrow_16(void* p, Vi v) {
  __m256i words = _mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(v));
  std::memcpy(p, &words, sizeof words);
}
template <int registers>
static inline void narrow_panel(void* to, const Vi* v) {
  for (int i = 0; i < registers; ++i)
    narrow_8(static_cast<char*>(to) + i * kLanes, v[i]);
}
static inline Vf load_f16(const void* p) {
  return _mm512_cvtph_ps(load_vector<__m256i>(p));
}
static inline void store_f16(void* p, Vf v) {
  __m256i narrow = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  std::memcpy(p, &narrow, sizeof narrow);
}

static inline Int16s widen_to_words(const uint8_t* p) {
  return reinterpret_cast<Int16s>(_mm512_cvtepu8_epi16(load_vector<__m256i>(p)));
}
static inline Int16s widen_to_words(const int8_t* p) {
  return reinterpret_cast<Int16s>(_mm512_cvtepi8_epi16(load_vector<__m256i>(p)));
}
static inline Vi multiply_pairs(Int16s a, Int16s b) {
  return reinterpret_cast<Vi>(
      _mm512_madd_epi16(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
static inline Int16s multiply_pairs(Int8s quantized, Int8s signed_ones) {
  return reinterpret_cast<Int16s>(_mm512_maddubs_epi16(reinterpret_cast<__m512i>(quantized),
                                                       reinterpret_cast<__m512i>(signed_ones)));
}
static inline Vl multiply_low_halves(Vl a, Vl b) {
  return reinterpret_cast<Vl>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
static inline Int8s low_int4(Int8s x) {
  return reinterpret_cast<Int8s>(
      _mm512_and_si512(reinterpret_cast<__m512i>(x), _mm512_set1_epi8(15)));
}
static inline Int8s high_int4(Int8s x) {
  return reinterpret_cast<Int8s>(
      _mm512_and_si512(_mm512_srli_epi16(reinterpret_cast<__m512i>(x), 4), _mm512_set1_epi8(15)));
}
static inline Int8s bits_of_bytes(Int8s x) {
  const __m512i table = _mm512_maskz_broadcast_i32x4(
      0xffff, _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  return reinterpret_cast<Int8s>(
      _mm512_add_epi8(_mm512_shuffle_epi8(table, reinterpret_cast<__m512i>(low_int4(x))),
                      _mm512_shuffle_epi8(table, reinterpret_cast<__m512i>(high_int4(x)))));
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
