// SPDX-License-Identifier: Apache-2.0
// A table of 256 bytes applied to rows; contract in ../quantize.h. With AVX-512 VBMI the table
// lies in four registers for all rows; elsewhere a load per byte is as fast as shuffles.

#include "../instructions.h"
#include "byte_lookup.h"
#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

#if defined(__AVX512BW__)
TENON_VBMI void map_registers(const uint8_t* table, const ByteRows& rows) {
  const RegisterTable in_registers = registers_of(table);
  const int64_t whole = rows.n / 64 * 64;
  const __mmask64 rest = (uint64_t{1} << (rows.n - whole)) - 1;
  for (int64_t r = 0; r < rows.rows; ++r) {
    const uint8_t* src = rows.src + r * rows.src_stride;
    uint8_t* dst = rows.dst + r * rows.dst_stride;
    for (int64_t i = 0; i < whole; i += 64)
      _mm512_storeu_si512(dst + i, look_up(in_registers, _mm512_loadu_si512(src + i)));
    if (rest == 0) continue;
    const __m512i x = _mm512_maskz_loadu_epi8(rest, src + whole);
    _mm512_mask_storeu_epi8(dst + whole, rest, look_up(in_registers, x));
  }
}
#endif

}  // namespace

void map_bytes(const uint8_t* table, const ByteRows& rows) {
#if defined(__AVX512BW__)
  if (instructions().avx512_vbmi) return map_registers(table, rows);
#endif
  for (int64_t r = 0; r < rows.rows; ++r) {
    const uint8_t* src = rows.src + r * rows.src_stride;
    uint8_t* dst = rows.dst + r * rows.dst_stride;
    int64_t i = 0;
    for (; i + 4 <= rows.n; i += 4) {
      uint8_t y[4] = {table[src[i]], table[src[i + 1]], table[src[i + 2]], table[src[i + 3]]};
      std::memcpy(dst + i, y, 4);
    }
    for (; i < rows.n; ++i)
      dst[i] = table[src[i]];
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
