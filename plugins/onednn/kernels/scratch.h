// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of a thread's own for kernels that run on the threads of a pool.

#include <cstdint>
#include <memory>
#include <new>

namespace tenon::onednn::kernels {

constexpr int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

// 64-byte aligned. Grows to what the largest use of this thread needs, and is kept until the thread
// ends; a later call may move it.
inline char* scratch_of_thread(int64_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(char* memory) const { ::operator delete(memory, kAlignment); }
  };
  thread_local std::unique_ptr<char, Free> memory;
  thread_local int64_t size = 0;
  if (size < bytes) {
    memory.reset();
    size = 0;
    memory.reset(static_cast<char*>(::operator new(static_cast<size_t>(bytes), kAlignment)));
    size = bytes;
  }
  return memory.get();
}

}  // namespace tenon::onednn::kernels
