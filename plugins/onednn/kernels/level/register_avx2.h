// SPDX-License-Identifier: Apache-2.0
#pragma once
// One register by AVX2, FMA and F16C; the contract is in simd.h, which includes this file.

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "vector_types.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

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
static inline Vi truncate_to_int(Vf v) {
  return __builtin_convertvector(v, Vi);
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
static inline void end_streams() {
  _mm_sfence();
}
template <class F>
static inline float fold_lanes(Vf v, F f) {
  v = f(v, _mm256_permute2f128_ps(v, v, 1));
  v = f(v, _mm256_permute_ps(v, 0x4e));
  return f(v, _mm256_permute_ps(v, 0xb1))[0];
}
static inline __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline Vf keep_part(Vf v, int64_t n, float fill) {
  return _mm256_blendv_ps(_mm256_set1_ps(fill), v, _mm256_castsi256_ps(first_lanes(n)));
}
static inline Vf load_part(const float* p, int64_t n, float fill) {
  return keep_part(_mm256_maskload_ps(p, first_lanes(n)), n, fill);
}
static inline void store_part(float* p, Vf v, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), v);
}
static inline uint32_t lanes_not_below(Vf x, Vf least) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x, least, _CMP_GE_OQ)));
}

static inline Vi widen_u8(const void* p) {
  return reinterpret_cast<Vi>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))));
}
static inline Vi widen_s8(const void* p) {
  return reinterpret_cast<Vi>(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p))));
}
static inline Vi widen_u16(const void* p) {
  return reinterpret_cast<Vi>(_mm256_cvtepu16_epi32(load_vector<__m128i>(p)));
}
static inline __m128i low_words(Vi v) {
  __m256i masked = _mm256_and_si256(reinterpret_cast<__m256i>(v), _mm256_set1_epi32(0xffff));
  return _mm_packus_epi32(_mm256_castsi256_si128(masked), _mm256_extracti128_si256(masked, 1));
}
static inline void narrow_8(void* p, Vi v) {
  __m128i words = low_words(v & 0xff);
  _mm_storel_epi64(static_cast<__m128i*>(p), _mm_packus_epi16(words, words));
}
static inline void narrow_16(void* p, Vi v) {
  __m128i words = low_words(v);
  std::memcpy(p, &words, sizeof words);
}
template <int registers>
static inline void narrow_panel(void* to, const Vi* v) {
  static_assert(registers == 2);
  const __m256i words = _mm256_packus_epi32(reinterpret_cast<__m256i>(v[0] & 0xff),
                                            reinterpret_cast<__m256i>(v[1] & 0xff));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
  const __m128i bytes =
      _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  std::memcpy(to, &bytes, sizeof bytes);
}
static inline Vf load_f16(const void* p) {
  return _mm256_cvtph_ps(load_vector<__m128i>(p));
}
static inline void store_f16(void* p, Vf v) {
  __m128i narrow = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  std::memcpy(p, &narrow, sizeof narrow);
}

static inline Int16s widen_to_words(const uint8_t* p) {
  return reinterpret_cast<Int16s>(_mm256_cvtepu8_epi16(load_vector<__m128i>(p)));
}
static inline Int16s widen_to_words(const int8_t* p) {
  return reinterpret_cast<Int16s>(_mm256_cvtepi8_epi16(load_vector<__m128i>(p)));
}
static inline Vi multiply_pairs(Int16s a, Int16s b) {
  return reinterpret_cast<Vi>(
      _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
static inline Int16s multiply_pairs(Int8s quantized, Int8s signed_ones) {
  return reinterpret_cast<Int16s>(_mm256_maddubs_epi16(reinterpret_cast<__m256i>(quantized),
                                                       reinterpret_cast<__m256i>(signed_ones)));
}
static inline Vl multiply_low_halves(Vl a, Vl b) {
  return reinterpret_cast<Vl>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
static inline Int8s low_int4(Int8s x) {
  return reinterpret_cast<Int8s>(
      _mm256_and_si256(reinterpret_cast<__m256i>(x), _mm256_set1_epi8(15)));
}
static inline Int8s high_int4(Int8s x) {
  return reinterpret_cast<Int8s>(
      _mm256_and_si256(_mm256_srli_epi16(reinterpret_cast<__m256i>(x), 4), _mm256_set1_epi8(15)));
}
static inline Int8s bits_of_bytes(Int8s x) {
  const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2,
                                         1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  return reinterpret_cast<Int8s>(
      _mm256_add_epi8(_mm256_shuffle_epi8(table, reinterpret_cast<__m256i>(low_int4(x))),
                      _mm256_shuffle_epi8(table, reinterpret_cast<__m256i>(high_int4(x)))));
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
