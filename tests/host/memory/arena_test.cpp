// SPDX-License-Identifier: Apache-2.0
// Places in one block of memory: the service that plans of the host and backends share.
#include "memory/arena.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tenon::host {
namespace {

bool overlap(const ArenaBlock& a, const ArenaBlock& b) {
  bool is_alive_together = a.first <= b.last && b.first <= a.last;
  return is_alive_together && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

uint64_t alive_at(const std::vector<ArenaBlock>& blocks, uint64_t step, uint64_t align) {
  uint64_t bytes = 0;
  for (const ArenaBlock& one : blocks)
    if (one.first <= step && step <= one.last) bytes += (one.bytes + align - 1) / align * align;
  return bytes;
}

TEST(Arena, ReusesTheMemoryOfWhatIsNoLongerAlive) {
  std::vector<ArenaBlock> chain = {{64, 0, 1, 0}, {64, 1, 2, 0}, {64, 2, 3, 0}};
  Result<tn_arena_size> size = place_blocks(chain, 64);
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size->bytes, 128u);
  EXPECT_EQ(size->lower_bound, 128u);
  EXPECT_EQ(size->peak_step, 1u);
  EXPECT_EQ(chain[0].offset, chain[2].offset);
  EXPECT_NE(chain[0].offset, chain[1].offset);
}

TEST(Arena, TakesTheSmallestGapThatIsLargeEnough) {
  // At steps 2 and 3 there is a gap of 128 bytes in front of a gap of 64.
  std::vector<ArenaBlock> blocks = {
      {512, 0, 3, 0}, {384, 1, 3, 0}, {128, 0, 1, 0}, {64, 2, 3, 0}, {32, 3, 3, 0}};
  ASSERT_TRUE(place_blocks(blocks, 32).ok());
  for (size_t i = 0; i < blocks.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      EXPECT_FALSE(overlap(blocks[i], blocks[k])) << i << " and " << k;
}

TEST(Arena, GivesNoRoomToWhatIsNeverUsedOrEmpty) {
  std::vector<ArenaBlock> blocks = {{100, UINT64_MAX, 0, 7}, {0, 0, 5, 7}};
  Result<tn_arena_size> size = place_blocks(blocks);
  ASSERT_TRUE(size.ok());
  EXPECT_EQ(size->bytes, 0u);
  EXPECT_EQ(size->lower_bound, 0u);
  EXPECT_EQ(blocks[0].offset, 0u);
  EXPECT_EQ(blocks[1].offset, 0u);
}

TEST(Arena, KeepsApartWhatIsAliveTogether) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    uint64_t align = uint64_t{1} << random() % 9;
    std::vector<ArenaBlock> blocks(random() % 40);
    for (ArenaBlock& one : blocks) {
      one.first = random() % 20;
      one.last = one.first + random() % 6;
      one.bytes = 1 + random() % 1000;
    }
    Result<tn_arena_size> size = place_blocks(blocks, align);
    ASSERT_TRUE(size.ok());
    uint64_t most = 0;
    for (uint64_t step = 0; step < 30; ++step)
      most = std::max(most, alive_at(blocks, step, align));
    EXPECT_EQ(size->lower_bound, most);
    EXPECT_EQ(alive_at(blocks, size->peak_step, align), most);
    EXPECT_LE(most, size->bytes);
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i].offset % align, 0u);
      EXPECT_LE(blocks[i].offset + blocks[i].bytes, size->bytes);
      for (size_t k = 0; k < i; ++k)
        EXPECT_FALSE(overlap(blocks[i], blocks[k]));
    }
  }
}

TEST(Arena, RefusesAnAlignmentAndSizesThatCannotBe) {
  tn_arena_block block{1, 0, 0, 0};
  tn_arena_size size{};
  Status odd(arena_service()->place(&block, 1, 48, &size));
  EXPECT_EQ(odd.code(), TN_INVALID_ARGUMENT);
  std::vector<ArenaBlock> large(3, {UINT64_MAX / 4, 0, 0, 0});
  EXPECT_EQ(place_blocks(large).status().code(), TN_RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace tenon::host
