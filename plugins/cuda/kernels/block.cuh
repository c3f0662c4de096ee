// SPDX-License-Identifier: Apache-2.0
// Combining one number per thread over a warp, or a block of at most 1024 threads.
#ifndef TENON_CUDA_BLOCK_CUH
#define TENON_CUDA_BLOCK_CUH
#include "element.cuh"

namespace tn {

// Every thread of a warp gets the result. All threads of the block take part.
template <class Combine>
TN_FN float over_warp(float x, Combine combine) {
  for (int distance = 16; distance > 0; distance /= 2)
    x = combine(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}

// Every thread gets the result. All threads of the block take part.
template <class Combine>
TN_FN float over_block(float x, Combine combine, float neutral) {
  __shared__ float partial[32];
  x = over_warp(x, combine);
  __syncthreads();  // partial may still be read by a call before this one
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  float all = neutral;
  for (unsigned i = 0; i < blockDim.x / 32; ++i)
    all = combine(all, partial[i]);
  return all;
}

struct Sum {
  TN_FN float operator()(float a, float b) const { return a + b; }
};
struct Highest {
  TN_FN float operator()(float a, float b) const { return high(a, b); }
};

}  // namespace tn

#endif
