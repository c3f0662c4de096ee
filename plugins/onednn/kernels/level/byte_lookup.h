// SPDX-License-Identifier: Apache-2.0
#pragma once
// A table of 256 bytes in four registers, with AVX-512 VBMI. Whoever calls it asks for the
// instructions at run time.

#include "simd.h"

#if defined(__AVX512BW__)
#define TENON_VBMI __attribute__((target("avx512vbmi")))

namespace tenon::onednn::kernels::TENON_LEVEL {

struct RegisterTable {
  __m512i part[4] = {};
};

TENON_VBMI inline RegisterTable registers_of(const uint8_t* table) {
  RegisterTable out;
  for (int i = 0; i < 4; ++i)
    out.part[i] = _mm512_loadu_si512(table + 64 * i);
  return out;
}

TENON_VBMI inline __m512i look_up(const RegisterTable& table, __m512i x) {
  const __m512i low = _mm512_permutex2var_epi8(table.part[0], x, table.part[1]);  // bits 0-6
  const __m512i high = _mm512_permutex2var_epi8(table.part[2], x, table.part[3]);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
#endif
