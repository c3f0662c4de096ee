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
  const Vi whole = truncate_to_int(v);
  std::memcpy(p, &whole, sizeof whole);
}
static inline void store_lanes(int64_t* p, Vf v) {
  constexpr float kTop = 9223372036854775808.0F;
  for (int i = 0; i < kLanes; ++i) {
    const float x = v[i];
    p[i] = static_cast<int64_t>(__builtin_fabsf(x) < kTop ? x : -kTop);
  }
}
static inline void store_lanes(Bool* p, Vf v) {
  narrow_8(p, (v != 0.0F) & 1);
}

static inline Vf load_lanes(const F16* p) {
  return load_f16(p);
}
static inline void store_lanes(F16* p, Vf v) {
  store_f16(p, v);
}

// n < kLanes elements, no byte more; 0 in the other lanes.
static inline Vf load_lanes_part(const float* p, int64_t n) {
  return load_part(p, n, 0.0F);
}
static inline void store_lanes_part(float* p, Vf v, int64_t n) {
  store_part(p, v, n);
}
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
// The same of n <= kLanes.
template <class T>
static inline Vf load_some(const T* p, int64_t n) {
  return n == kLanes ? load_lanes(p) : load_lanes_part(p, n);
}
template <class T>
static inline void store_some(T* p, Vf v, int64_t n) {
  if (n == kLanes)
    store_lanes(p, v);
  else
    store_lanes_part(p, v, n);
}

// Calls f(i, count) for each register of [0, n); count is the number of lanes that are there.
template <class F>
void each_register(int64_t n, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    f(i, kLanes);
  if (i < n) f(i, static_cast<int>(n - i));
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
