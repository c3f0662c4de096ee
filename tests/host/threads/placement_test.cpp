// SPDX-License-Identifier: Apache-2.0
// Workers moved among the CPUs, as the kernel reports them.
#include "threads/placement.hpp"

#include <atomic>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>

namespace tenon::host::team {
namespace {

cpu_set_t mask_of(pthread_t thread) {
  cpu_set_t mask;
  EXPECT_EQ(pthread_getaffinity_np(thread, sizeof mask, &mask), 0);
  return mask;
}

class PlacementTest : public ::testing::Test {
 protected:
  PlacementTest() {
    worker_ = std::thread([this] {
      placement_.begin();
      has_begun_ = true;
      while (!ends_)
        std::this_thread::yield();
    });
    while (!has_begun_)
      std::this_thread::yield();
    // On one CPU, so that the caller's does not change amid a test.
    CPU_ZERO(&own_);
    CPU_SET(sched_getcpu(), &own_);
    pthread_setaffinity_np(pthread_self(), sizeof own_, &own_);
  }
  void SetUp() override {
    if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "needs two CPUs";
  }
  ~PlacementTest() override {
    ends_ = true;
    worker_.join();
    pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
  }

  cpu_set_t workers() { return mask_of(worker_.native_handle()); }
  cpu_set_t others() {
    cpu_set_t mask = before_;
    CPU_XOR(&mask, &mask, &own_);
    return mask;
  }

  Placement placement_;
  const cpu_set_t before_ = mask_of(pthread_self());
  cpu_set_t own_;
  std::atomic<bool> has_begun_{false};
  std::atomic<bool> ends_{false};
  std::thread worker_;
};

#define EXPECT_MASK(found, expected)                     \
  do {                                                   \
    const cpu_set_t found_mask = (found);                \
    const cpu_set_t expected_mask = expected;            \
    EXPECT_TRUE(CPU_EQUAL(&found_mask, &expected_mask)); \
  } while (false)

TEST_F(PlacementTest, IsAnywhereAtFirst) {
  placement_.move(Place::kAnywhere);
  EXPECT_MASK(workers(), before_);
}

TEST_F(PlacementTest, KeepsApartAndTogetherAndLetsGo) {
  placement_.move(Place::kApart);
  EXPECT_MASK(workers(), others());
  placement_.move(Place::kTogether);
  EXPECT_MASK(workers(), own_);
  placement_.move(Place::kAnywhere);
  EXPECT_MASK(workers(), before_);
}

TEST_F(PlacementTest, HandsOverUntilTheNextMove) {
  placement_.move(Place::kApart);
  placement_.hand_over();
  EXPECT_MASK(workers(), own_);
  placement_.move(Place::kApart);
  EXPECT_MASK(workers(), others());
  placement_.hand_over();
  placement_.move(Place::kAnywhere);
  EXPECT_MASK(workers(), before_);
}

TEST_F(PlacementTest, KeepsToWhatSomebodyElseHasSet) {
  placement_.move(Place::kApart);
  pthread_setaffinity_np(worker_.native_handle(), sizeof own_, &own_);  // as taskset does
  placement_.move(Place::kAnywhere);
  EXPECT_MASK(workers(), own_);
  placement_.move(Place::kApart);  // no other CPU is left
  EXPECT_MASK(workers(), own_);
}

TEST_F(PlacementTest, ReadsWhatTheWorkerHasRun) {
  const uint64_t before = placement_.cpu_ns();
  while (placement_.cpu_ns() == before)
    std::this_thread::yield();
  EXPECT_EQ(Placement().cpu_ns(), 0);
}

TEST_F(PlacementTest, ReadsHowLongTheWorkerWaited) {
  EXPECT_EQ(Placement().waited_ns(), 0);
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "needs schedstat";
  placement_.move(Place::kTogether);  // two threads that want one CPU
  const uint64_t before = placement_.waited_ns();
  while (placement_.waited_ns() == before) {
  }
}

}  // namespace
}  // namespace tenon::host::team
