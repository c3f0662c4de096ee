// SPDX-License-Identifier: Apache-2.0
#pragma once
// Offsets for blocks that live for a span of steps, so that blocks alive together do not overlap.
// Greedy by size (Pisarchyk and Lee 2020, "Efficient memory management for deep neural net
// inference", section 5): the largest block first, at the lowest gap that fits.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace tenon::host {

struct ArenaBlock {
  uint64_t bytes = 0;
  size_t first = 0, last = 0;  // steps, both inclusive
  uint64_t offset = 0;         // the answer
};

inline constexpr uint64_t kArenaAlign = 64;

// Fills in the offsets; returns the size of the whole.
inline uint64_t place_blocks(std::vector<ArenaBlock>& blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<const ArenaBlock*> placed;  // sorted by offset
  uint64_t total = 0;
  for (size_t index : order) {
    ArenaBlock& block = blocks[index];
    uint64_t bytes = (block.bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
    uint64_t at = 0;
    for (const ArenaBlock* other : placed) {
      if (other->last < block.first || other->first > block.last) continue;
      if (at + bytes <= other->offset) break;
      at = std::max(at,
                    (other->offset + other->bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign);
    }
    block.offset = at;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &block,
                                   [](auto* a, auto* b) { return a->offset < b->offset; }),
                  &block);
    total = std::max(total, at + bytes);
  }
  return total;
}

}  // namespace tenon::host
