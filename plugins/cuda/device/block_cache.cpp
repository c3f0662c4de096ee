// SPDX-License-Identifier: Apache-2.0
#include "block_cache.hpp"

#include <algorithm>

namespace tenon::cuda {
namespace {

constexpr uint64_t kSmall = 512, kLarge = uint64_t{2} << 20;

// Few sizes, so that blocks are used again: small ones in steps of 512 bytes, others of 2 MiB.
uint64_t rounded(uint64_t bytes) {
  uint64_t step = bytes < kLarge / 2 ? kSmall : kLarge;
  return std::max<uint64_t>((bytes + step - 1) / step, 1) * step;
}

}  // namespace

BlockCache::~BlockCache() {
  trim(true);
}

void* BlockCache::take(uint64_t bytes, void* stream) {
  // A block up to an eighth too large serves as well.
  for (auto at = cached_.lower_bound(bytes); at != cached_.end() && at->first <= bytes + bytes / 8;
       ++at) {
    std::vector<Cached>& blocks = at->second;
    auto own = std::find_if(blocks.begin(), blocks.end(), [&](const Cached& c) {
      return (c.stream && c.stream == stream) || !c.fence || source_.is_done(c.fence);
    });
    if (own == blocks.end()) continue;
    void* block = own->block;
    if (own->fence) source_.drop(own->fence);
    blocks.erase(own);
    counts_.cached_bytes -= at->first;
    live_[block] = at->first;
    if (blocks.empty()) cached_.erase(at);
    return block;
  }
  return nullptr;
}

void* BlockCache::allocate(uint64_t bytes, void* stream) {
  bytes = rounded(bytes);
  std::unique_lock lock(mutex_);
  void* block = take(bytes, stream);
  if (!block) {
    block = source_.allocate(bytes);
    if (!block) {
      lock.unlock();
      trim(true);
      lock.lock();
      block = source_.allocate(bytes);
    }
    if (!block) return nullptr;
    live_[block] = bytes;
    ++counts_.allocations;
  }
  counts_.live_bytes += live_[block];
  counts_.peak_bytes = std::max(counts_.peak_bytes, counts_.live_bytes);
  ++counts_.live_blocks;
  return block;
}

void BlockCache::free(void* block, void* stream, Reuse reuse) {
  if (!block) return;
  std::lock_guard lock(mutex_);
  auto found = live_.find(block);
  if (found == live_.end()) return;
  uint64_t bytes = found->second;
  live_.erase(found);
  void* fence = stream ? source_.fence(stream) : nullptr;
  cached_[bytes].push_back({block, reuse == Reuse::kByStream ? stream : nullptr, fence});
  counts_.live_bytes -= bytes;
  counts_.cached_bytes += bytes;
  --counts_.live_blocks;
}

void BlockCache::trim(bool wait) {
  std::lock_guard lock(mutex_);
  for (auto at = cached_.begin(); at != cached_.end();) {
    std::vector<Cached> kept;
    for (Cached& cached : at->second) {
      if (cached.fence && !wait && !source_.is_done(cached.fence)) {
        kept.push_back(cached);
        continue;
      }
      if (cached.fence) {
        source_.wait(cached.fence);
        source_.drop(cached.fence);
      }
      source_.release(cached.block);
      counts_.cached_bytes -= at->first;
    }
    at->second = std::move(kept);
    at = at->second.empty() ? cached_.erase(at) : std::next(at);
  }
}

BlockCounts BlockCache::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace tenon::cuda
