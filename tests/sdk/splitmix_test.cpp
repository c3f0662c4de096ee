// SPDX-License-Identifier: Apache-2.0
#include "tenon/sdk/splitmix.hpp"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Splitmix, GivesThePublishedSequence) {
  constexpr uint64_t kSeed = 1234567;
  EXPECT_EQ(splitmix64(kSeed), 6457827717110365317u);
  EXPECT_EQ(splitmix64(kSeed + kSplitmixStep), 3203168211198807973u);
  EXPECT_EQ(splitmix64(kSeed + 2 * kSplitmixStep), 9817491932198370423u);
}

TEST(Splitmix, IntegersReachBothEnds) {
  SampleIntegers numbers(1);
  bool low = false, high = false;
  for (int i = 0; i < 100; ++i) {
    int64_t number = numbers.integer(-1, 1);
    ASSERT_TRUE(number >= -1 && number <= 1);
    low = low || number == -1;
    high = high || number == 1;
  }
  EXPECT_TRUE(low && high);
}

}  // namespace
}  // namespace tenon
