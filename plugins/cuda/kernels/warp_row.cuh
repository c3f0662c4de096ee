// SPDX-License-Identifier: Apache-2.0
// Rows of at most 1024 elements that a warp keeps in registers, as floats: a lane has vectors of N
// elements, 32 N apart, K of them.
#ifndef TENON_CUDA_WARP_ROW_CUH
#define TENON_CUDA_WARP_ROW_CUH
#include "block.cuh"

namespace tn {

template <class E, int N, int K>
struct WarpRow {
  float at[K][N];

  static TN_FN u64 place(int k) { return (static_cast<u64>(k) * 32 + threadIdx.x % 32) * N; }
  // What lies behind the row becomes `missing`. The row's length is a multiple of N.
  TN_FN void load(const E* x, u64 cols, float missing) {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (place(k) < cols) {
        const Vector<E, N> from = tn::load<N>(x + place(k));
#pragma unroll
        for (int i = 0; i < N; ++i)
          at[k][i] = value(from.at[i]);
      } else {
#pragma unroll
        for (int i = 0; i < N; ++i)
          at[k][i] = missing;
      }
    }
  }
  TN_FN void store(E* y, u64 cols) const {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (place(k) >= cols) continue;
      Vector<E, N> to;
#pragma unroll
      for (int i = 0; i < N; ++i)
        to.at[i] = Convert<E>::from(at[k][i]);
      tn::store(y + place(k), to);
    }
  }
  // visit(element, its place in the row), also for what lies behind the row.
  template <class Visit>
  TN_FN void each(const Visit& visit) {
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
      for (int i = 0; i < N; ++i)
        visit(at[k][i], place(k) + static_cast<u64>(i));
  }
  // The same with the element of another row in the same place.
  template <class Visit>
  TN_FN void each_with(const WarpRow& other, const Visit& visit) {
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
      for (int i = 0; i < N; ++i)
        visit(at[k][i], other.at[k][i], place(k) + static_cast<u64>(i));
  }
};

// visit(row, whether there is one) by each warp, equally often by all of a block; where there is
// none, row is 0.
template <class Visit>
TN_FN void for_each_warp_row(u64 rows, const Visit& visit) {
  const unsigned warps = blockDim.x / 32;
  const u64 step = static_cast<u64>(gridDim.x) * warps;
  for (u64 first = static_cast<u64>(blockIdx.x) * warps; first < rows; first += step) {
    const u64 row = first + threadIdx.x / 32;
    visit(row < rows ? row : 0, row < rows);
  }
}

}  // namespace tn

// kernel<E, N, K> for the row's length: vectors of 4 elements where it is a multiple of that.
#define TN_WARP_KERNEL(kernel, name, E, Args)            \
  TN_BLOCK_KERNEL(kernel##_##name, Args) {               \
    if (args.cols % 4 == 0 && args.cols <= 128) {        \
      tn::kernel<E, 4, 1>(args);                         \
    } else if (args.cols % 4 == 0 && args.cols <= 512) { \
      tn::kernel<E, 4, 4>(args);                         \
    } else if (args.cols % 4 == 0) {                     \
      tn::kernel<E, 4, 8>(args);                         \
    } else if (args.cols <= 128) {                       \
      tn::kernel<E, 1, 4>(args);                         \
    } else {                                             \
      tn::kernel<E, 1, 32>(args);                        \
    }                                                    \
  }

#endif
