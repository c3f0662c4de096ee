// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every kernel speaks of: element types, quantisation parameters, CPU levels and the caller's
// thread pool. Plain structs without behaviour, so that the per-level sources may include it:
// nothing here is instantiated with instructions that the CPU may lack.

#include <cstdint>

namespace tenon::onednn::kernels {

// Those before kF64 are what the float kernels load and store (convert.h); exact.h takes all.
enum class ElementType : uint8_t {
  kF32,
  kBf16,
  kF16,
  kU8,
  kS8,
  kI32,
  kI64,
  kBool,
  kF64,
  kU16,
  kS16,
  kU32,
  kU64,
  kU4,  // two a byte, the first in the low half; constants alone (int4_product.h)
  kS4,
  kCount
};
constexpr bool is_float_kernel_type(ElementType type) {
  return type < ElementType::kF64;
}

// Of packed types 0: no element has an address.
constexpr bool is_packed_type(ElementType type) {
  return type == ElementType::kU4 || type == ElementType::kS4;
}
constexpr int64_t kElementBytes[] = {4, 2, 2, 1, 1, 4, 8, 1, 8, 2, 2, 4, 8, 0, 0};
constexpr int64_t element_bytes(ElementType type) {
  return kElementBytes[static_cast<int>(type)];
}

// Per tensor: real = scale * (stored - zero_point). Only u8 and s8 edges read it. scale 0 means
// that the integers are plain numbers: a load converts, a store truncates towards zero and
// saturates.
struct Quant {
  float scale = 0.0F;
  int32_t zero_point = 0;
};

// A typed, non-owning view of one edge's data.
struct Source {
  const void* data = nullptr;
  ElementType type = ElementType::kF32;
  Quant quant = {};
};
struct Target {
  void* data = nullptr;
  ElementType type = ElementType::kF32;
  Quant quant = {};
};

// The sources under level/ are compiled once per level. A higher level contains the lower ones.
enum class Level : uint8_t {
  kBaseline,  // x86-64-v2: SSE4.2
  kAvx2,      // AVX2, FMA, F16C, BMI2
  kAvx512,    // F, BW, DQ, VL; VBMI is used where the CPU has it
  kCount
};

// The caller's pool: calls body(arg, lo, hi) so that [0, n) is covered once, in pieces of at least
// `grain` (the last may be smaller), from any thread, and returns when all are done. A null `run`
// means this thread. No kernel's result depends on how the range is cut.
struct Parallel {
  using Body = void (*)(void* arg, uint64_t lo, uint64_t hi);
  void (*run)(void* self, uint64_t n, uint64_t grain, Body body, void* arg) = nullptr;
  void* self = nullptr;
};

}  // namespace tenon::onednn::kernels
