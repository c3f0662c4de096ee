// SPDX-License-Identifier: Apache-2.0
// The memory that runs of a plan's specializations reuse.
#include "memory/run_memory.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace tenon::host {
namespace {

TEST(RunMemory, GivesTheBlockAgainThatCameBack) {
  RunMemory memory;
  RunMemory::Block block = memory.take(1000);
  ASSERT_NE(block.data, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % kArenaAlign, 0u);
  char* const first = block.data;
  memory.give_back(block);

  RunMemory::Block again = memory.take(10);

  EXPECT_EQ(again.data, first);
  EXPECT_EQ(again.bytes, 1000u);
  memory.give_back(again);
}

TEST(RunMemory, GivesRunsInFlightBlocksOfTheirOwn) {
  RunMemory memory;
  RunMemory::Block one = memory.take(64), other = memory.take(64);

  EXPECT_NE(one.data, other.data);
  memory.give_back(one);
  memory.give_back(other);
}

TEST(RunMemory, PutsALargerBlockInThePlaceOfOneThatIsTooSmall) {
  RunMemory memory;
  memory.give_back(memory.take(1000));

  RunMemory::Block larger = memory.take(1001);

  EXPECT_EQ(larger.bytes, 1250u);
  for (uint64_t i = 0; i < larger.bytes; ++i)
    larger.data[i] = 1;
  memory.give_back(larger);
  RunMemory::Block largest = memory.take(5000);
  EXPECT_EQ(largest.bytes, 5000u);
  memory.give_back(largest);
}

}  // namespace
}  // namespace tenon::host
