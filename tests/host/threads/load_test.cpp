// SPDX-License-Identifier: Apache-2.0
// When the team takes the machine for busy.
#include "threads/load.hpp"

#include <gtest/gtest.h>

namespace tenon::host::team {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kNow = 5'000 * kMs;

TEST(Load, IsLowAtFirst) {
  const Load load;
  EXPECT_FALSE(load.is_high(kNow));
}

TEST(Load, IsHighForAWhileWhenMuchIsLost) {
  Load load;
  load.report(kNow, 10 * kMs, 3 * kMs);
  EXPECT_TRUE(load.is_high(kNow));
  EXPECT_TRUE(load.is_high(kNow + 9 * kMs));
  EXPECT_FALSE(load.is_high(kNow + 11 * kMs));
}

TEST(Load, IsLookedAtLessOftenWhenItComesBack) {
  Load load;
  load.report(kNow, 10 * kMs, 5 * kMs);
  load.report(kNow + 15 * kMs, 10 * kMs, 5 * kMs);  // 5 ms after it was thought gone
  EXPECT_TRUE(load.is_high(kNow + 34 * kMs));
  EXPECT_FALSE(load.is_high(kNow + 36 * kMs));
  load.report(kNow + 5'000 * kMs, 10 * kMs, 9 * kMs);  // another one
  EXPECT_FALSE(load.is_high(kNow + 5'011 * kMs));
}

TEST(Load, EndsWhenItIsOver) {
  Load load;
  load.report(kNow, 10 * kMs, 5 * kMs);
  load.is_over(kNow + 10 * kMs);
  EXPECT_FALSE(load.is_high(kNow + 10 * kMs));
}

TEST(Load, LastsAsLongAsItIsReported) {
  Load load;
  for (uint64_t t = 0; t < 1000; t += 10)
    load.report(kNow + t * kMs, 10 * kMs, 5 * kMs);
  EXPECT_TRUE(load.is_high(kNow + 1000 * kMs));
}

TEST(Load, IsNotOneInterruption) {
  Load load;
  for (uint64_t t = 0; t < 20; ++t)
    load.report(kNow, kMs, 0);
  load.report(kNow, kMs, kMs);
  EXPECT_FALSE(load.is_high(kNow));
}

TEST(Load, ForgetsWhatWasLongAgo) {
  Load load;
  load.report(kNow, 20 * kMs, 19 * kMs);
  for (uint64_t t = 0; t < 300; ++t)
    load.report(kNow + t * kMs, kMs, 0);
  load.report(kNow + 300 * kMs, kMs, kMs);
  EXPECT_FALSE(load.is_high(kNow + 301 * kMs));
}

TEST(Load, SeesTheGapsOfALoop) {
  Load load;
  {
    WaitClock clock(load);
    EXPECT_FALSE(clock.load_is_high());
    uint64_t waited = 0;
    for (int i = 0; i < 1000; ++i) {
      const uint64_t advanced = clock.turn();
      EXPECT_GE(advanced, waited);
      waited = advanced;
    }
    EXPECT_GT(waited, 0U);
  }
}

}  // namespace
}  // namespace tenon::host::team
