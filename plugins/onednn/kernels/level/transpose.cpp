// SPDX-License-Identifier: Apache-2.0
// A 2-d transpose in blocks of N registers with N elements each: of whole registers, which a line
// of the caches is, for elements of 4 and 8 bytes; what is left, and narrower elements, in
// registers of 16 bytes.

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

// Blocks of N x N elements from (row, column) on, where these are; returns where they end.
struct Corner {
  int64_t row, column;
};
template <class T, int N>
Corner run_blocks(const TransposeTile& tile, Corner from) {
  const T* src = static_cast<const T*>(tile.src);
  T* dst = static_cast<T*>(tile.dst);
  const Corner end = {from.row + (tile.rows - from.row) / N * N,
                      from.column + (tile.cols - from.column) / N * N};
  for (int64_t c = from.column; c < end.column; c += N)
    for (int64_t r = from.row; r < end.row; r += N)
      block<T, N>(src + r * tile.src_stride + c, tile.src_stride, dst + c * tile.dst_stride + r,
                  tile.dst_stride);
  return end;
}

template <class T>
void run_small(const TransposeTile& tile, Corner from) {
  constexpr int N = 16 / sizeof(T);
  const T* src = static_cast<const T*>(tile.src);
  T* dst = static_cast<T*>(tile.dst);
  const Corner end = run_blocks<T, N>(tile, from);
  for (int64_t c = from.column; c < tile.cols; ++c)
    for (int64_t r = c < end.column ? end.row : from.row; r < tile.rows; ++r)
      dst[c * tile.dst_stride + r] = src[r * tile.src_stride + c];
}

template <class T>
void run(const TransposeTile& tile) {
  constexpr int N = kVectorBytes / sizeof(T);
  if constexpr (sizeof(T) < 4 || N == 16 / sizeof(T)) {
    run_small<T>(tile, {0, 0});
  } else {
    const Corner end = run_blocks<T, N>(tile, {0, 0});
    TransposeTile above = tile;  // the last columns of the rows that blocks have
    above.rows = end.row;
    if (end.column < tile.cols) run_small<T>(above, {0, end.column});
    if (end.row < tile.rows) run_small<T>(tile, {end.row, 0});
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
