// SPDX-License-Identifier: Apache-2.0
// A 2-d transpose in blocks of N registers with N elements each: of whole registers, which a line
// of the caches is, for elements of 4 and 8 bytes; what is left, and narrower elements, in
// registers of 16 bytes, or less in narrow tiles.

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
void run_small(const TransposeTile& tile) {
  const T* src = static_cast<const T*>(tile.src);
  T* dst = static_cast<T*>(tile.dst);
  if (tile.rows < N || tile.cols < N) {
    if constexpr (N > 4) return run_small<T, N / 2>(tile);
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

template <class T>
TransposeTile part_of(
    const TransposeTile& tile, int64_t row, int64_t col, int64_t rows, int64_t cols) {
  TransposeTile part = tile;
  part.src = static_cast<const T*>(tile.src) + row * tile.src_stride + col;
  part.dst = static_cast<T*>(tile.dst) + col * tile.dst_stride + row;
  part.rows = rows;
  part.cols = cols;
  return part;
}

template <class T>
void run(const TransposeTile& tile) {
  constexpr int64_t N = kVectorBytes / sizeof(T);
  if constexpr (sizeof(T) < 4 || N == 16 / sizeof(T)) {
    run_small<T>(tile);
  } else {
    const T* src = static_cast<const T*>(tile.src);
    T* dst = static_cast<T*>(tile.dst);
    const int64_t rows = tile.rows / N * N, cols = tile.cols / N * N;
    for (int64_t c = 0; c < cols; c += N)
      for (int64_t r = 0; r < rows; r += N)
        block<T, N>(src + r * tile.src_stride + c, tile.src_stride, dst + c * tile.dst_stride + r,
                    tile.dst_stride);
    if (cols < tile.cols) run_small<T>(part_of<T>(tile, 0, cols, rows, tile.cols - cols));
    if (rows < tile.rows) run_small<T>(part_of<T>(tile, rows, 0, tile.rows - rows, tile.cols));
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
