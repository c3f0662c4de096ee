// SPDX-License-Identifier: Apache-2.0
#include "device/block_cache.hpp"

#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

namespace tenon::cuda {
namespace {

// Memory that ends, and streams whose work is done when the test says so.
class Fake : public BlockSource {
 public:
  uint64_t left = uint64_t{64} << 20;
  std::set<void*> blocks, fences;
  bool done = false;
  int waited = 0;

  void* allocate(uint64_t bytes) override {
    if (bytes > left) return nullptr;
    left -= bytes;
    void* block = std::malloc(16);
    sizes_[block] = bytes;
    blocks.insert(block);
    return block;
  }
  void release(void* block) override {
    EXPECT_EQ(blocks.erase(block), 1u);
    left += sizes_[block];
    std::free(block);
  }
  void* fence(void*) override {
    void* made = std::malloc(1);
    fences.insert(made);
    return made;
  }
  bool is_done(void*) override { return done; }
  void wait(void*) override { ++waited; }
  void drop(void* fence) override {
    EXPECT_EQ(fences.erase(fence), 1u);
    std::free(fence);
  }
  ~Fake() override {
    EXPECT_TRUE(blocks.empty());
    EXPECT_TRUE(fences.empty());
  }

 private:
  std::map<void*, uint64_t> sizes_;
};

char streams[2];
void* const kOne = &streams[0];
void* const kTwo = &streams[1];

TEST(BlockCache, GivesAFreedBlockToItsOwnStreamAtOnce) {
  Fake source;
  BlockCache cache(source);
  void* block = cache.allocate(1000, kOne);
  cache.free(block, kOne);

  void* other = cache.allocate(1000, kTwo);
  void* again = cache.allocate(1000, kOne);

  EXPECT_NE(other, block);
  EXPECT_EQ(again, block);
  EXPECT_EQ(cache.counts().allocations, 2u);
  cache.free(other, nullptr);
  cache.free(again, nullptr);
}

TEST(BlockCache, GivesAFreedBlockToOthersWhenItsWorkIsDone) {
  Fake source;
  BlockCache cache(source);
  void* block = cache.allocate(1000, kOne);
  cache.free(block, kOne);
  source.done = true;

  void* other = cache.allocate(1000, kTwo);

  EXPECT_EQ(other, block);
  cache.free(other, nullptr);
}

TEST(BlockCache, KeepsABlockFromItsOwnStreamWhereTheCpuWritesFirst) {
  Fake source;
  BlockCache cache(source);
  void* staged = cache.allocate(1000, kOne);
  cache.free(staged, kOne, Reuse::kWhenDone);

  void* other = cache.allocate(1000, kOne);
  source.done = true;
  void* again = cache.allocate(1000, kOne);

  EXPECT_NE(other, staged);
  EXPECT_EQ(again, staged);
  cache.free(other, nullptr);
  cache.free(again, nullptr);
}

TEST(BlockCache, GivesEverythingBackBeforeItIsOutOfMemory) {
  Fake source;
  BlockCache cache(source);
  void* block = cache.allocate(uint64_t{40} << 20, kOne);
  cache.free(block, kOne);

  void* larger = cache.allocate(uint64_t{60} << 20, kTwo);
  void* none = cache.allocate(uint64_t{60} << 20, kTwo);

  EXPECT_NE(larger, nullptr);
  EXPECT_EQ(source.waited, 1);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(cache.counts().live_blocks, 1u);
  cache.free(larger, nullptr);
  EXPECT_EQ(cache.counts().live_bytes, 0u);
  EXPECT_EQ(cache.counts().peak_bytes, uint64_t{60} << 20);
}

TEST(BlockCache, LeavesWhatItDoesNotKnow) {
  Fake source;
  BlockCache cache(source);
  cache.free(kOne, nullptr);
  cache.free(nullptr, nullptr);

  EXPECT_EQ(cache.counts().cached_bytes, 0u);
}

}  // namespace
}  // namespace tenon::cuda
