// SPDX-License-Identifier: Apache-2.0
#pragma once
// One register of f32 from or to kLanes elements of each type. bf16 and f16 round to nearest even
// and keep denormals at every level (the bf16 instructions of AVX-512 flush them, so only amx/ uses
// them).

#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

// Distinct types, so that an overload distinguishes them from the integers of the same size.
enum class Bf16 : uint16_t {};
enum class F16 : uint16_t {};
enum class Bool : uint8_t {};

template <class To, class T>
static inline To reinterpret(const T& value) {
  static_assert(sizeof(To) == sizeof(T));
  To to;
  std::memcpy(&to, &value, sizeof to);
  return to;
}
template <class V>
static inline V load_vector(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// GCC 12 makes long sequences of __builtin_convertvector between 8, 16 and 32 bits: by hand.
#if defined(__AVX512F__)
static inline Vi widen_u8(const void* p) {
  return reinterpret_cast<Vi>(_mm512_cvtepu8_epi32(load_vector<__m128i>(p)));
}
static inline Vi widen_s8(const void* p) {
  return reinterpret_cast<Vi>(_mm512_cvtepi8_epi32(load_vector<__m128i>(p)));
}
static inline Vi widen_u16(const void* p) {
  return reinterpret_cast<Vi>(_mm512_cvtepu16_epi32(load_vector<__m256i>(p)));
}
// The low 8 or 16 bits of each lane.
static inline void narrow_8(void* p, Vi v) {
  __m128i bytes = _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(v));
  std::memcpy(p, &bytes, sizeof bytes);
}
static inline void narrow_16(void* p, Vi v) {
  __m256i words = _mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(v));
  std::memcpy(p, &words, sizeof words);
}
#elif defined(__AVX2__)
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
#else
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
#endif

static inline Vf load_lanes(const float* p) {
  return load(p);
}
static inline Vf load_lanes(const Bf16* p) {
  return reinterpret_cast<Vf>(widen_u16(p) << 16);
}
static inline Vf load_lanes(const uint8_t* p) {
  return to_float(widen_u8(p));
}
static inline Vf load_lanes(const int8_t* p) {
  return to_float(widen_s8(p));
}
static inline Vf load_lanes(const int32_t* p) {
  return to_float(load_vector<Vi>(p));
}
static inline Vf load_lanes(const int64_t* p) {
  return __builtin_convertvector(load_vector<Lanes<int64_t>>(p), Vf);
}
static inline Vf load_lanes(const Bool* p) {
  Vi v = widen_u8(p);
  return v != 0 ? splat(1.0F) : Vf{};
}

static inline void store_lanes(float* p, Vf v) {
  store(p, v);
}
static inline Vu bits_of_bf16(Vf v) {
  Vu u = reinterpret_cast<Vu>(v);
  Vu rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
  Vu quiet = (u >> 16) | 0x40U;
  return v == v ? rounded : quiet;
}
#if defined(__AVX512BF16__)  // amx/ alone, whose products flush denormals anyway
static inline void store_lanes(Bf16* p, Vf v) {
  const __m256bh words = _mm512_cvtneps_pbh(v);
  std::memcpy(p, &words, sizeof words);
}
#else
static inline void store_lanes(Bf16* p, Vf v) {
  narrow_16(p, reinterpret_cast<Vi>(bits_of_bf16(v)));
}
#endif
// The limits are clamped as floats: NaN becomes the lower one, beyond saturates.
static inline Vf clamp(Vf v, float low, float high) {
  return min_fast(max_fast(v, splat(low)), splat(high));
}
static inline void store_lanes(uint8_t* p, Vf v) {
  narrow_8(p, truncate_to_int(clamp(v, 0.0F, 255.0F)));
}
static inline void store_lanes(int8_t* p, Vf v) {
  narrow_8(p, truncate_to_int(clamp(v, -128.0F, 127.0F)));
}
static inline void store_lanes(int32_t* p, Vf v) {
  // 2147483520 is the largest f32 under 2^31.
  Vi whole = truncate_to_int(max_fast(v, splat(-2147483648.0F)));
  Vi result = v > 2147483520.0F ? splat_i(INT32_MAX) : whole;
  std::memcpy(p, &result, sizeof result);
}
static inline void store_lanes(int64_t* p, Vf v) {
  constexpr float kTop = 9223372036854775808.0F;
  for (int i = 0; i < kLanes; ++i) {
    float x = v[i];
    p[i] = x >= kTop ? INT64_MAX : (x > -kTop ? static_cast<int64_t>(x) : INT64_MIN);
  }
}
static inline void store_lanes(Bool* p, Vf v) {
  narrow_8(p, (v != 0.0F) & 1);
}

#if defined(__AVX512F__)
static inline Vf load_lanes(const F16* p) {
  return _mm512_cvtph_ps(load_vector<__m256i>(p));
}
static inline void store_lanes(F16* p, Vf v) {
  __m256i narrow = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  std::memcpy(p, &narrow, sizeof narrow);
}
#elif defined(__AVX2__)
static inline Vf load_lanes(const F16* p) {
  return _mm256_cvtph_ps(load_vector<__m128i>(p));
}
static inline void store_lanes(F16* p, Vf v) {
  __m128i narrow = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  std::memcpy(p, &narrow, sizeof narrow);
}
#else
// The exponent is moved by a multiplication, which also normalises denormals.
static inline Vf load_lanes(const F16* p) {
  Vi half = widen_u16(p);
  Vi magnitude = (half & 0x7fff) << 13;
  Vf value = from_bits(magnitude) * 0x1p112F;
  value = (half & 0x7c00) == 0x7c00 ? from_bits(magnitude | 0x7f800000) : value;
  return from_bits(bits(value) | ((half & 0x8000) << 16));
}
static inline void store_lanes(F16* p, Vf v) {
  Vf a = absolute(v);
  // Under 2^-14 the addition of 0.5 leaves the rounded denormal in the low bits.
  Vi tiny = bits(a + 0.5F) - 0x3f000000;
  Vi u = bits(a);
  Vi normal = (u - 0x38000000 + 0xfff + ((u >> 13) & 1)) >> 13;
  Vi result = a < 0x1p-14F ? tiny : normal;
  result = a >= 65520.0F ? splat_i(0x7c00) : result;
  result = a != a ? splat_i(0x7e00) | ((u >> 13) & 0x3ff) : result;
  result |= (bits(v) >> 16) & 0x8000;
  narrow_16(p, result);
}
#endif

// n < kLanes elements, no byte more.
template <class T>
static inline Vf load_lanes_part(const T* p, int64_t n) {
  T lanes[kLanes] = {};
  std::memcpy(lanes, p, static_cast<uint64_t>(n) * sizeof(T));
  return load_lanes(lanes);
}
template <class T>
static inline void store_lanes_part(T* p, Vf v, int64_t n) {
  T lanes[kLanes];
  store_lanes(lanes, v);
  std::memcpy(p, lanes, static_cast<uint64_t>(n) * sizeof(T));
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
