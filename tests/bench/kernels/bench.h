// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernel benchmarks share: a pool of threads, aligned data, and the roofline. Each
// benchmark reports bytes_per_second of the traffic it cannot avoid, and `roof`: its share of what
// a plain read-and-write loop on the same threads reaches with the same number of bytes.

#include <cstdint>

#include <benchmark/benchmark.h>

#include "kernels/context.h"

namespace tenon::onednn::kernels::bench {

// n_threads - 1 workers that spin briefly, then sleep; one benchmark uses it at a time.
Parallel pool(int n_threads);
// Bytes per second of dst[i] = src[i] + 1 over `bytes` of traffic in all, measured once.
double bandwidth(int64_t bytes, int n_threads);

// Page-touched, 64-byte aligned memory, filled with uniform f32 of [low, high).
class Buffer {
 public:
  Buffer(int64_t n_floats, float low, float high);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() { return data_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

 private:
  float* data_;
};

inline void report(benchmark::State& state, int64_t bytes, int n_threads) {
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["roof"] = benchmark::Counter(
      static_cast<double>(state.iterations() * bytes) / bandwidth(bytes, n_threads),
      benchmark::Counter::kIsRate);
}

}  // namespace tenon::onednn::kernels::bench
