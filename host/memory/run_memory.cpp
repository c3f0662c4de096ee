// SPDX-License-Identifier: Apache-2.0
#include "memory/run_memory.hpp"

#include <algorithm>
#include <cstdlib>

#include "memory/free_memory.hpp"
#include "memory/large_pages.hpp"

namespace tenon::host {

char* aligned_memory(uint64_t bytes) {
  const uint64_t wanted = aligned_bytes(std::max<uint64_t>(bytes, 1));
  if (!fits_memory(wanted)) return nullptr;
  auto* memory = static_cast<char*>(std::aligned_alloc(kArenaAlign, wanted));
  prefer_large_pages(memory, wanted);
  return memory;
}

RunMemory::~RunMemory() {
  for (Block& block : idle_)
    std::free(block.data);
}

RunMemory::Block RunMemory::take(uint64_t bytes) {
  Block old;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      old = idle_.back();
      idle_.pop_back();
    }
  }
  if (old.bytes >= bytes) return old;
  // Shapes that grow step by step ask for a new block now and then only.
  const uint64_t wanted = old.data ? std::max(bytes, old.bytes + old.bytes / 4) : bytes;
  std::free(old.data);
  if (char* data = aligned_memory(wanted)) return {data, wanted};
  return {aligned_memory(bytes), bytes};
}

void RunMemory::give_back(Block block) {
  std::lock_guard lock(mutex_);
  idle_.push_back(block);
}

}  // namespace tenon::host
