// SPDX-License-Identifier: Apache-2.0
#pragma once
// The transpose of as many registers as a register has lanes: interleaved log2(lanes) times with
// the register half of them further on (the perfect shuffle), rows are columns.

#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

#if defined(__AVX512F__)
static inline Vf interleave_low(Vf a, Vf b) {
  return __builtin_shuffle(a, b, Vi{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
}
static inline Vf interleave_high(Vf a, Vf b) {
  return __builtin_shuffle(a, b, Vi{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
}
#elif defined(__AVX2__)
static inline Vf interleave_low(Vf a, Vf b) {
  return __builtin_shuffle(a, b, Vi{0, 8, 1, 9, 2, 10, 3, 11});
}
static inline Vf interleave_high(Vf a, Vf b) {
  return __builtin_shuffle(a, b, Vi{4, 12, 5, 13, 6, 14, 7, 15});
}
#else
static inline Vf interleave_low(Vf a, Vf b) {
  return __builtin_shuffle(a, b, Vi{0, 4, 1, 5});
}
static inline Vf interleave_high(Vf a, Vf b) {
  return __builtin_shuffle(a, b, Vi{2, 6, 3, 7});
}
#endif

[[gnu::always_inline]] static inline void transpose(Vf (&rows)[kLanes]) {
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    Vf next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = interleave_low(rows[i], rows[i + kLanes / 2]);
      next[2 * i + 1] = interleave_high(rows[i], rows[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i)
      rows[i] = next[i];
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
