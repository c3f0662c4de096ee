// SPDX-License-Identifier: Apache-2.0
#pragma once
// One register by Advanced SIMD (NEON), the baseline on AArch64; the contract is in simd.h, which
// includes this file.

#include <cstdint>
#include <cstring>

#include <arm_neon.h>

#include "register_parts.h"
#include "vector_types.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

static inline Vf round_even(Vf x) {
  return reinterpret_cast<Vf>(vrndnq_f32(reinterpret_cast<float32x4_t>(x)));
}
static inline Vf floor(Vf x) {
  return reinterpret_cast<Vf>(vrndmq_f32(reinterpret_cast<float32x4_t>(x)));
}
static inline Vf ceil(Vf x) {
  return reinterpret_cast<Vf>(vrndpq_f32(reinterpret_cast<float32x4_t>(x)));
}
static inline Vf trunc(Vf x) {
  return reinterpret_cast<Vf>(vrndq_f32(reinterpret_cast<float32x4_t>(x)));
}
static inline Vd round_even(Vd x) {
  return reinterpret_cast<Vd>(vrndnq_f64(reinterpret_cast<float64x2_t>(x)));
}
static inline Vf sqrt(Vf x) {
  return reinterpret_cast<Vf>(vsqrtq_f32(reinterpret_cast<float32x4_t>(x)));
}
// The instructions saturate and make 0 of NaN, where all levels promise INT32_MIN.
static inline Vi within_int(Vf x, Vi converted) {
  return (x >= -2147483648.0F) & (x < 2147483648.0F) ? converted : Vi{} + INT32_MIN;
}
static inline Vi truncate_to_int(Vf x) {
  return within_int(x, reinterpret_cast<Vi>(vcvtq_s32_f32(reinterpret_cast<float32x4_t>(x))));
}
static inline Vi round_to_int(Vf x) {
  return within_int(x, reinterpret_cast<Vi>(vcvtnq_s32_f32(reinterpret_cast<float32x4_t>(x))));
}
static inline Vf fma(Vf a, Vf b, Vf c) {
  return reinterpret_cast<Vf>(vfmaq_f32(reinterpret_cast<float32x4_t>(c),
                                        reinterpret_cast<float32x4_t>(a),
                                        reinterpret_cast<float32x4_t>(b)));
}
static inline Vd fma(Vd a, Vd b, Vd c) {
  return reinterpret_cast<Vd>(vfmaq_f64(reinterpret_cast<float64x2_t>(c),
                                        reinterpret_cast<float64x2_t>(a),
                                        reinterpret_cast<float64x2_t>(b)));
}
// There is no store past the caches for one register.
static inline void stream(float* p, Vf v) {
  std::memcpy(p, &v, sizeof v);
}
static inline void end_streams() {}
template <class F>
static inline float fold_lanes(Vf v, F f) {
  v = f(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
  return f(v, __builtin_shufflevector(v, v, 1, 0, 3, 2))[0];
}
static inline uint32_t lanes_not_below(Vf x, Vf least) {
  const Vu bit = {1, 2, 4, 8};
  return vaddvq_u32(reinterpret_cast<uint32x4_t>(reinterpret_cast<Vu>(x >= least) & bit));
}

static inline Vi widen_u8(const void* p) {
  const auto bytes = static_cast<uint64_t>(load_vector<uint32_t>(p));
  return reinterpret_cast<Vi>(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(bytes)))));
}
static inline Vi widen_s8(const void* p) {
  const auto bytes = static_cast<uint64_t>(load_vector<uint32_t>(p));
  return reinterpret_cast<Vi>(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(bytes)))));
}
static inline Vi widen_u16(const void* p) {
  return reinterpret_cast<Vi>(vmovl_u16(vcreate_u16(load_vector<uint64_t>(p))));
}
static inline void narrow_8(void* p, Vi v) {
  const uint16x4_t words = vmovn_u32(reinterpret_cast<uint32x4_t>(v));
  const uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
  std::memcpy(p, &bytes, kLanes);
}
static inline void narrow_16(void* p, Vi v) {
  const uint16x4_t words = vmovn_u32(reinterpret_cast<uint32x4_t>(v));
  std::memcpy(p, &words, sizeof words);
}
template <int registers>
static inline void narrow_panel(void* to, const Vi* v) {
  for (int i = 0; i < registers; ++i)
    narrow_8(static_cast<char*>(to) + i * kLanes, v[i]);
}
static inline Vf load_f16(const void* p) {
  return reinterpret_cast<Vf>(vcvt_f32_f16(load_vector<float16x4_t>(p)));
}
static inline void store_f16(void* p, Vf v) {
  const float16x4_t narrow = vcvt_f16_f32(reinterpret_cast<float32x4_t>(v));
  std::memcpy(p, &narrow, sizeof narrow);
}

static inline Int16s widen_to_words(const uint8_t* p) {
  return reinterpret_cast<Int16s>(vmovl_u8(vld1_u8(p)));
}
static inline Int16s widen_to_words(const int8_t* p) {
  return reinterpret_cast<Int16s>(vmovl_s8(vld1_s8(p)));
}
static inline Vi multiply_pairs(Int16s a, Int16s b) {
  const auto left = reinterpret_cast<int16x8_t>(a), right = reinterpret_cast<int16x8_t>(b);
  return reinterpret_cast<Vi>(
      vpaddq_s32(vmull_s16(vget_low_s16(left), vget_low_s16(right)), vmull_high_s16(left, right)));
}
static inline Int16s multiply_pairs(Int8s quantized, Int8s signed_ones) {
  const auto left = reinterpret_cast<uint8x16_t>(quantized);
  const auto right = reinterpret_cast<int8x16_t>(signed_ones);
  const int16x8_t low = vmulq_s16(reinterpret_cast<int16x8_t>(vmovl_u8(vget_low_u8(left))),
                                  vmovl_s8(vget_low_s8(right)));
  const int16x8_t high =
      vmulq_s16(reinterpret_cast<int16x8_t>(vmovl_high_u8(left)), vmovl_high_s8(right));
  return reinterpret_cast<Int16s>(vpaddq_s16(low, high));
}
static inline Vl multiply_low_halves(Vl a, Vl b) {
  return reinterpret_cast<Vl>(vmull_u32(vmovn_u64(reinterpret_cast<uint64x2_t>(a)),
                                        vmovn_u64(reinterpret_cast<uint64x2_t>(b))));
}
static inline Int8s low_int4(Int8s x) {
  return x & 15;
}
static inline Int8s high_int4(Int8s x) {
  return reinterpret_cast<Int8s>(vshrq_n_u8(reinterpret_cast<uint8x16_t>(x), 4));
}
static inline Int8s bits_of_bytes(Int8s x) {
  return reinterpret_cast<Int8s>(vcntq_u8(reinterpret_cast<uint8x16_t>(x)));
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
