// SPDX-License-Identifier: Apache-2.0
#pragma once
// Enough of CUDA to run our kernels on the CPU: the .cu files and generated texts compile as plain
// C++ behind this header. A kernel is then a function of its arguments' bytes, the number of blocks
// and the threads of a block. Kernels that synchronise get a thread for each of a block's threads.

#include <barrier>
#include <thread>
#include <vector>

#include <math.h>
#include <string.h>

#define TN_FN inline
#define __shared__ static
#define TN_EMULATE_(symbol, Args, runner)                                        \
  static void symbol##_body(const Args& args);                                   \
  extern "C" void symbol(const void* bytes, unsigned blocks, unsigned threads) { \
    emulate::runner([&] { symbol##_body(*static_cast<const Args*>(bytes)); },    \
                    blocks < 3 ? blocks : 3, threads);                           \
  }                                                                              \
  static void symbol##_body(const Args& args)
#define TN_KERNEL(symbol, Args) TN_EMULATE_(symbol, Args, alone)
#define TN_BLOCK_KERNEL(symbol, Args) TN_EMULATE_(symbol, Args, together)

struct EmulatedIndex {
  unsigned x = 0, y = 0, z = 0;
};
static thread_local EmulatedIndex threadIdx, blockIdx;
static EmulatedIndex blockDim, gridDim;

namespace emulate {

static std::barrier<>* team = nullptr;
static float lanes[1024];

// Kernels stride over what is left, so that few blocks and threads do as well as many.
template <class Body>
void alone(const Body& body, unsigned blocks, unsigned threads) {
  gridDim.x = blocks;
  blockDim.x = threads < 32 ? threads : 32;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x)
      body();
  }
}

template <class Body>
void together(const Body& body, unsigned blocks, unsigned threads) {
  gridDim.x = blocks;
  blockDim.x = threads < 64 ? threads : 64;
  std::barrier<> barrier(blockDim.x);
  team = &barrier;
  std::vector<std::thread> all;
  for (unsigned t = 0; t < blockDim.x; ++t) {
    all.emplace_back([&, t] {
      threadIdx.x = t;
      for (unsigned b = 0; b < blocks; ++b) {
        blockIdx.x = b;
        body();
        barrier.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : all)
    thread.join();
}

}  // namespace emulate

// Kernels that add do not synchronise, so their threads run one after the other.
inline void atomicAdd(float* to, float x) {
  *to += x;
}
inline void __syncthreads() {
  emulate::team->arrive_and_wait();
}
// All threads of the block come here, not only those of a warp.
inline float __shfl_xor_sync(unsigned, float x, int distance) {
  emulate::lanes[threadIdx.x] = x;
  __syncthreads();
  float other = emulate::lanes[threadIdx.x ^ static_cast<unsigned>(distance)];
  __syncthreads();
  return other;
}
