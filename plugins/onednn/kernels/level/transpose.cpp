// SPDX-License-Identifier: Apache-2.0
// A 2-d transpose in blocks: N registers with N elements each, of 16 bytes but for narrow tiles.

#include "transpose.h"

#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

// src: [N, N], rows src_stride apart -> dst: [N, N], rows dst_stride apart
template <class T, int N>
inline void block(const T* src, int64_t src_stride, T* dst, int64_t dst_stride) {
  typename VectorOf<T, N>::Type row[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    std::memcpy(&row[i], src + i * src_stride, sizeof(row[i]));
  transpose(row);
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    std::memcpy(dst + i * dst_stride, &row[i], sizeof(row[i]));
}

// In blocks of N x N, or smaller ones where the tile is narrower.
template <class T, int64_t N = 16 / sizeof(T)>
void run(const TransposeTile& tile) {
  const T* src = static_cast<const T*>(tile.src);
  T* dst = static_cast<T*>(tile.dst);
  if (tile.rows < N || tile.cols < N) {
    if constexpr (N > 4) return run<T, N / 2>(tile);
    for (int64_t c = 0; c < tile.cols; ++c)
      for (int64_t r = 0; r < tile.rows; ++r)
        dst[c * tile.dst_stride + r] = src[r * tile.src_stride + c];
    return;
  }
  // The last block of a row or column ends with it, over a part of the block before.
  for (int64_t c = 0; c < tile.cols; c += N) {
    const int64_t col = c + N <= tile.cols ? c : tile.cols - N;
    for (int64_t r = 0; r < tile.rows; r += N) {
      const int64_t row = r + N <= tile.rows ? r : tile.rows - N;
      block<T, N>(src + row * tile.src_stride + col, tile.src_stride,
                  dst + col * tile.dst_stride + row, tile.dst_stride);
    }
  }
}

}  // namespace

void transpose_tile(const TransposeTile& tile) {
  switch (tile.element_bytes) {
    case 1:
      return run<uint8_t>(tile);
    case 2:
      return run<uint16_t>(tile);
    case 4:
      return run<uint32_t>(tile);
    default:
      return run<uint64_t>(tile);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
