// SPDX-License-Identifier: Apache-2.0
// Greedy by size (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
// 2020, section 5.2): the largest block first, each in the smallest gap that holds it.
#include "memory/arena.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "services/boundary.hpp"

namespace tenon::host {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 63;

// The smallest gap between blocks that are alive at the same time, else behind the last of them.
uint64_t gap_for(const ArenaBlock& block,
                 uint64_t bytes,
                 const std::vector<std::pair<const ArenaBlock*, uint64_t>>& by_offset) {
  uint64_t best = UINT64_MAX, best_size = UINT64_MAX, end = 0;
  for (const auto& [other, other_bytes] : by_offset) {
    if (other->last < block.first || other->first > block.last) continue;
    if (other->offset > end && other->offset - end >= bytes && other->offset - end < best_size) {
      best = end;
      best_size = other->offset - end;
    }
    end = std::max(end, other->offset + other_bytes);
  }
  return best_size < UINT64_MAX ? best : end;
}

}  // namespace

Result<tn_arena_size> place_blocks(std::span<ArenaBlock> blocks, uint64_t align) {
  auto rounded = [align](uint64_t bytes) { return (bytes + align - 1) / align * align; };
  std::vector<size_t> order;
  std::vector<std::pair<uint64_t, int64_t>> changes;  // step, bytes that begin or end to live
  uint64_t sum = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    ArenaBlock& block = blocks[i];
    block.offset = 0;
    if (block.first > block.last || block.bytes == 0) continue;
    if (sum > kMost - align || block.bytes > kMost - align - sum)
      return Status(TN_RESOURCE_EXHAUSTED, "an arena of more than 2^63 bytes");
    uint64_t bytes = rounded(block.bytes);
    sum += bytes;
    order.push_back(i);
    changes.emplace_back(block.first, static_cast<int64_t>(bytes));
    if (block.last < UINT64_MAX) changes.emplace_back(block.last + 1, -static_cast<int64_t>(bytes));
  }
  tn_arena_size size{};
  std::sort(changes.begin(), changes.end());  // what ends at a step goes before what begins there
  int64_t alive = 0;
  for (const auto& [step, bytes] : changes) {
    alive += bytes;
    if (alive <= static_cast<int64_t>(size.lower_bound)) continue;
    size.lower_bound = static_cast<uint64_t>(alive);
    size.peak_step = step;
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return rounded(blocks[a].bytes) > rounded(blocks[b].bytes);
  });
  std::vector<std::pair<const ArenaBlock*, uint64_t>> placed;  // by offset, with rounded sizes
  for (size_t index : order) {
    ArenaBlock& block = blocks[index];
    uint64_t bytes = rounded(block.bytes);
    block.offset = gap_for(block, bytes, placed);
    auto behind = std::upper_bound(placed.begin(), placed.end(), block.offset,
                                   [](uint64_t at, auto& one) { return at < one.first->offset; });
    placed.insert(behind, {&block, bytes});
    size.bytes = std::max(size.bytes, block.offset + bytes);
  }
  return size;
}

const tn_host_arena* arena_service() {
  auto place = [](tn_arena_block* blocks, uint64_t n, uint64_t align, tn_arena_size* out) {
    return guarded([&]() -> Status {
      if (align == 0 || (align & (align - 1)) != 0)
        return invalid(cat("align: expected a power of two, got ", align));
      TN_TRY(size, place_blocks({blocks, n}, align));
      *out = size;
      return {};
    });
  };
  static const tn_host_arena table{sizeof table, 1, place};
  return &table;
}

}  // namespace tenon::host
