// SPDX-License-Identifier: Apache-2.0
// A block of a 2-d transpose in registers of 16 bytes: N rows of N elements, interleaved log2(N)
// times with the row N/2 further on (the perfect shuffle), are the N columns.

#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

using V8 = uint8_t __attribute__((vector_size(16)));
using V16 = uint16_t __attribute__((vector_size(16)));
using V32 = uint32_t __attribute__((vector_size(16)));
using V64 = uint64_t __attribute__((vector_size(16)));

inline V8 low(V8 a, V8 b) {
  return __builtin_shuffle(a, b, V8{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
}
inline V8 high(V8 a, V8 b) {
  return __builtin_shuffle(a, b, V8{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
}
inline V16 low(V16 a, V16 b) {
  return __builtin_shuffle(a, b, V16{0, 8, 1, 9, 2, 10, 3, 11});
}
inline V16 high(V16 a, V16 b) {
  return __builtin_shuffle(a, b, V16{4, 12, 5, 13, 6, 14, 7, 15});
}
inline V32 low(V32 a, V32 b) {
  return __builtin_shuffle(a, b, V32{0, 4, 1, 5});
}
inline V32 high(V32 a, V32 b) {
  return __builtin_shuffle(a, b, V32{2, 6, 3, 7});
}
inline V64 low(V64 a, V64 b) {
  return __builtin_shuffle(a, b, V64{0, 2});
}
inline V64 high(V64 a, V64 b) {
  return __builtin_shuffle(a, b, V64{1, 3});
}

// src: [N, N], rows src_stride apart -> dst: [N, N], rows dst_stride apart
template <class T, class V, int N>
inline void block(const T* src, int64_t src_stride, T* dst, int64_t dst_stride) {
  V row[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    std::memcpy(&row[i], src + i * src_stride, sizeof(V));
#pragma GCC unroll 4
  for (int step = 1; step < N; step *= 2) {
    V next[N];
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; ++i) {
      next[2 * i] = low(row[i], row[i + N / 2]);
      next[2 * i + 1] = high(row[i], row[i + N / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i)
      row[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i)
    std::memcpy(dst + i * dst_stride, &row[i], sizeof(V));
}

template <class T, class V>
void run(const TransposeTile& tile) {
  constexpr int N = 16 / sizeof(T);
  const T* src = static_cast<const T*>(tile.src);
  T* dst = static_cast<T*>(tile.dst);
  const int64_t rows = tile.rows / N * N;
  const int64_t cols = tile.cols / N * N;
  for (int64_t c = 0; c < cols; c += N) {
    for (int64_t r = 0; r < rows; r += N) {
      block<T, V, N>(src + r * tile.src_stride + c, tile.src_stride, dst + c * tile.dst_stride + r,
                     tile.dst_stride);
    }
  }
  for (int64_t c = 0; c < tile.cols; ++c) {
    for (int64_t r = c < cols ? rows : 0; r < tile.rows; ++r) {
      dst[c * tile.dst_stride + r] = src[r * tile.src_stride + c];
    }
  }
}

}  // namespace

void transpose_tile(const TransposeTile& tile) {
  switch (tile.element_bytes) {
    case 1:
      return run<uint8_t, V8>(tile);
    case 2:
      return run<uint16_t, V16>(tile);
    case 4:
      return run<uint32_t, V32>(tile);
    default:
      return run<uint64_t, V64>(tile);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
