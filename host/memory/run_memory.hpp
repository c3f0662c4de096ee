// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that runs of a plan have in turn.

#include <cstdint>
#include <mutex>
#include <vector>

#include "memory/arena.hpp"

namespace tenon::host {

constexpr uint64_t aligned_bytes(uint64_t bytes) {
  return (bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
}
// Memory at kArenaAlign, for std::free; NULL: there is none.
char* aligned_memory(uint64_t bytes);

// Memory that the runs of all specializations of a plan, and of plans with shared states, reuse:
// one block for each run in flight. A specialization is small beside it, so that many shapes can
// stay compiled. Thread-safe.
class RunMemory {
 public:
  struct Block {
    char* data = nullptr;
    uint64_t bytes = 0;
  };
  RunMemory() = default;
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;
  // The block that was given back last, or a larger one in its place; data NULL: out of memory.
  Block take(uint64_t bytes);
  void give_back(Block block);

 private:
  std::mutex mutex_;
  std::vector<Block> idle_;
};

}  // namespace tenon::host
