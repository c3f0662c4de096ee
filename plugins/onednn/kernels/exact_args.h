// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a level has for exact.h: each instruction of f64 and of integers, and each conversion of
// numbers from and to an element type, as one loop over a tile. Integers are 64 bits wide, or 32 or
// 8 where the type has no more (N: int64_t, int32_t, int8_t); those of unsigned types are kept in
// the same bits. `out` may be an operand itself, and overlaps none otherwise.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

constexpr int64_t kExactTile = 256;  // numbers of 64 bits, or as many bytes of narrower ones

// bits: of the element type, to which a result wraps.
template <class N>
using IntegerOp = void (*)(const N* a, const N* b, const N* c, uint32_t bits, int64_t n, N* out);
template <class N>
using IntegerLoad = void (*)(const void* src, int64_t stride, int64_t n, N* out);
template <class N>
using IntegerStore = void (*)(const N* from, int64_t n, void* dst);

// A comparison whose results are stored as bytes of 0 and 1.
template <class N>
using CompareOp = void (*)(const N* a, const N* b, int64_t n, uint8_t* dst);

template <class N>
struct IntegerOps {
  IntegerOp<N> of_signed[256];  // by TN_EXPR_*; null: no such instruction
  IntegerOp<N> of_unsigned[256];
  CompareOp<N> compare_signed[256];  // null: no comparison
  CompareOp<N> compare_unsigned[256];
  // Null: no integer, or one of more bits.
  IntegerLoad<N> load[static_cast<int>(ElementType::kCount)];
  IntegerStore<N> store[static_cast<int>(ElementType::kCount)];
};

using RealOp = void (*)(const double* a, const double* b, const double* c, int64_t n, double* out);

using RealLoad = void (*)(const void* src, int64_t stride, int64_t n, double* out);
using RealStore = void (*)(const double* from, int64_t n, void* dst);

struct RealOps {
  RealOp of[256];                  // by TN_EXPR_*; null: no such instruction
  CompareOp<double> compare[256];  // null: no comparison
  // Null: not in vectors.
  RealLoad load[static_cast<int>(ElementType::kCount)];
  RealStore store[static_cast<int>(ElementType::kCount)];
};

// Conversions of f32, which holds every f16 and bf16, to integers.
using SingleStore = void (*)(const float* from, int64_t n, void* dst);
struct SingleOps {
  SingleStore store[static_cast<int>(ElementType::kCount)];  // null: no integer
};

}  // namespace tenon::onednn::kernels
