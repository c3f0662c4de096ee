// SPDX-License-Identifier: Apache-2.0
#pragma once
// The types of one register of the level that this file is compiled for, on GCC's vector extension.

#include <cstdint>
#include <cstring>

namespace tenon::onednn::kernels::TENON_LEVEL {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kCpuRegisters = 32;  // of the CPU
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
constexpr int kCpuRegisters = 16;
#elif defined(__ARM_NEON)
constexpr int kVectorBytes = 16;
constexpr int kCpuRegisters = 32;
#else
constexpr int kVectorBytes = 16;
constexpr int kCpuRegisters = 16;
#endif
constexpr int kLanes = kVectorBytes / 4;      // f32 lanes
constexpr int kHalfLanes = kVectorBytes / 8;  // f64 lanes

using Vf = float __attribute__((vector_size(kVectorBytes)));
using Vi = int32_t __attribute__((vector_size(kVectorBytes)));
using Vu = uint32_t __attribute__((vector_size(kVectorBytes)));
using Vd = double __attribute__((vector_size(kVectorBytes)));
using Vl = int64_t __attribute__((vector_size(kVectorBytes)));
// Whole registers of quantized values, and of the 16-bit numbers between them and the sums.
using Int8s = int8_t __attribute__((vector_size(kVectorBytes)));
using Int16s = int16_t __attribute__((vector_size(kVectorBytes)));
// kLanes or kHalfLanes elements of a narrower or wider type.
template <class T, int n>
struct VectorOf {
  typedef T Type __attribute__((vector_size(sizeof(T) * n)));
};
template <class T>
using Lanes = typename VectorOf<T, kLanes>::Type;
template <class T>
using HalfLanes = typename VectorOf<T, kHalfLanes>::Type;

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

}  // namespace tenon::onednn::kernels::TENON_LEVEL
