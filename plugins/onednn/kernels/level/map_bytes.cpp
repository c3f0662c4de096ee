// SPDX-License-Identifier: Apache-2.0
// A table of 256 bytes applied to a row; contract in ../quantize.h. With AVX-512 VBMI the table
// lies in four registers; elsewhere a load per byte is as fast as shuffles.

#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

#if defined(__AVX512BW__)
__attribute__((target("avx512vbmi"))) int64_t map_registers(const uint8_t* table,
                                                            const uint8_t* src,
                                                            int64_t n,
                                                            uint8_t* dst) {
  const __m512i t0 = _mm512_loadu_si512(table);
  const __m512i t1 = _mm512_loadu_si512(table + 64);
  const __m512i t2 = _mm512_loadu_si512(table + 128);
  const __m512i t3 = _mm512_loadu_si512(table + 192);
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    __m512i x = _mm512_loadu_si512(src + i);
    __m512i low = _mm512_permutex2var_epi8(t0, x, t1);  // bits 0-6 choose of 128
    __m512i high = _mm512_permutex2var_epi8(t2, x, t3);
    __m512i y = _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
    _mm512_storeu_si512(dst + i, y);
  }
  return i;
}
#endif

}  // namespace

void map_bytes(const uint8_t* table, const uint8_t* src, int64_t n, uint8_t* dst) {
  int64_t i = 0;
#if defined(__AVX512BW__)
  if (__builtin_cpu_supports("avx512vbmi") != 0) i = map_registers(table, src, n, dst);
#endif
  for (; i + 4 <= n; i += 4) {
    uint8_t y[4] = {table[src[i]], table[src[i + 1]], table[src[i + 2]], table[src[i + 3]]};
    std::memcpy(dst + i, y, 4);
  }
  for (; i < n; ++i)
    dst[i] = table[src[i]];
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
