// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every kernel speaks of: element types, quantization parameters, CPU levels and the caller's
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
  // From here on only narrow.h reads them, and packed constants of 4 bits int4_product.h. Those of
  // less than a byte are packed, the first in the low bits.
  kU4,
  kS4,
  kU2,
  kS2,
  kF4E2M1,
  kF8E4M3,
  kF8E4M3Fnuz,
  kF8E5M2,
  kF8E5M2Fnuz,
  kF8E8M0,
  kCount
};
constexpr bool is_float_kernel_type(ElementType type) {
  return type < ElementType::kF64;
}

// What floating-point numbers are kept in between nodes.
constexpr bool is_real_type(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kBf16;
}
constexpr bool is_narrow_type(ElementType type) {
  return type >= ElementType::kU4;
}
constexpr bool is_int4_type(ElementType type) {
  return type == ElementType::kU4 || type == ElementType::kS4;
}
constexpr int64_t kElementBits[] = {32, 16, 16, 8, 8, 32, 64, 8, 64, 16, 16, 32,
                                    64, 4,  4,  2, 2, 4,  8,  8, 8,  8,  8};
// Of packed types 0: no element has an address.
constexpr int64_t element_bytes(ElementType type) {
  return kElementBits[static_cast<int>(type)] / 8;
}
constexpr int64_t bytes_for(ElementType type, int64_t n) {
  return (n * kElementBits[static_cast<int>(type)] + 7) / 8;
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
// Rows in it, one behind the other where they are loaded: of each `length` elements, `stride`
// apart, the first `row_stride` behind that of the row before.
struct RowGrid {
  int64_t offset = 0;
  int64_t rows = 1;
  int64_t row_stride = 0;
  int64_t length = 1;
  int64_t stride = 1;
};
struct Target {
  void* data = nullptr;
  ElementType type = ElementType::kF32;
  Quant quant = {};
};

// The sources under level/ are compiled once per level. A higher level contains the lower ones.
enum class Level : uint8_t {
  kBaseline,  // x86-64-v2: SSE4.2; AArch64: Advanced SIMD, and no other level
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
