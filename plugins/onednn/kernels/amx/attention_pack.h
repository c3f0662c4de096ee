// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keys and values as right operands of bf16 products, made for each head as it comes: element (k,
// n) of a panel of 32 columns lies at [k / 32][n / 16 % 2][k / 2 % 16][n % 16][k % 2].

#include "../level/simd.h"
#include "../tile_product_args.h"

namespace tenon::onednn::kernels::amx {

struct Matrix {
  const uint16_t* data;
  int64_t k_stride, n_stride;
  int64_t k, n;  // extents; zeros up to whole steps and panels
};

constexpr int64_t kPanelStep = kTilePanel * kTileDepth / 2;  // elements of a panel in one step of k

inline __m512i load_words(const void* p) {
  __m512i v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// rows[i][j] of 32 bits becomes rows[j][i].
inline void transpose_16(__m512i* rows) {
  __m512i a[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  __m512i b[16];
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  // b[4 g + c] has columns c, c + 4, c + 8, c + 12 of rows 4 g to 4 g + 3, a quarter each.
  for (int c = 0; c < 4; ++c) {
    const __m512i low = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88);
    const __m512i high = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
    const __m512i low2 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88);
    const __m512i high2 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
    rows[c] = _mm512_shuffle_i32x4(low, low2, 0x88);
    rows[8 + c] = _mm512_shuffle_i32x4(low, low2, 0xdd);
    rows[4 + c] = _mm512_shuffle_i32x4(high, high2, 0x88);
    rows[12 + c] = _mm512_shuffle_i32x4(high, high2, 0xdd);
  }
}

// One tile: 32 of k, 16 of n; `to` is a 1 KiB block.
inline void pack_tile(const Matrix& from, int64_t k, int64_t n, uint16_t* to) {
  const int64_t ks = from.k - k < 32 ? from.k - k : 32;
  const int64_t ns = from.n - n < 16 ? from.n - n : 16;
  const uint16_t* const at = from.data + k * from.k_stride + n * from.n_stride;
  if (ks == 32 && ns == 16 && from.k_stride == 1) {
    __m512i rows[16];
    for (int i = 0; i < 16; ++i)
      rows[i] = load_words(at + i * from.n_stride);
    transpose_16(rows);
    std::memcpy(to, rows, sizeof rows);
    return;
  }
  if (ks == 32 && ns == 16 && from.n_stride == 1) {
    for (int i = 0; i < 16; ++i) {
      __m256i even, odd;
      std::memcpy(&even, at + 2 * i * from.k_stride, sizeof even);
      std::memcpy(&odd, at + (2 * i + 1) * from.k_stride, sizeof odd);
      const __m512i pairs = _mm512_or_si512(_mm512_cvtepu16_epi32(even),
                                            _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
      std::memcpy(to + 32 * i, &pairs, sizeof pairs);
    }
    return;
  }
  std::memset(to, 0, 1024);
  for (int64_t i = 0; i < ks; ++i)
    for (int64_t j = 0; j < ns; ++j)
      to[i / 2 * 32 + j * 2 + i % 2] = at[i * from.k_stride + j * from.n_stride];
}

// All panels, one behind the other: [panels][steps of k][2][16][16][2].
inline void pack_right(const Matrix& from, uint16_t* to) {
  for (int64_t n = 0; n < from.n; n += kTilePanel)
    for (int64_t k = 0; k < from.k; k += 32)
      for (int64_t half = 0; half < 2; ++half, to += kPanelStep / 2) {
        if (n + 16 * half < from.n)
          pack_tile(from, k, n + 16 * half, to);
        else
          std::memset(to, 0, 1024);
      }
}

}  // namespace tenon::onednn::kernels::amx
