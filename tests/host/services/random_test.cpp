// SPDX-License-Identifier: Apache-2.0
#include "tenon/host/random.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/services.hpp"

namespace tenon::host {
namespace {

using ::testing::ElementsAre;

// The known answers that the authors publish with Random123 (kat_vectors, philox4x32, 10 rounds).
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_THAT(philox(0, 0, 0), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox(UINT64_MAX, UINT64_MAX, UINT64_MAX),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Random, CountsWordsOfBlocks) {
  std::vector<uint32_t> out(6);
  random_service()->bits(7, 8, 9, out.data(), 6);

  EXPECT_EQ(out[0], philox(7, 8, 2)[1]);
  EXPECT_EQ(out[3], philox(7, 8, 3)[0]);
}

TEST(Random, DoesNotDependOnHowItIsCut) {
  std::vector<uint32_t> whole(37), parts(37);
  random_service()->bits(5, 9, 3, whole.data(), 37);
  for (uint64_t i = 0; i < 37; i += 5)
    random_service()->bits(5, 9, 3 + i, parts.data() + i, std::min<uint64_t>(5, 37 - i));
  EXPECT_EQ(whole, parts);

  std::vector<double> normal(21), again(21);
  random_service()->normal(5, 9, 1, normal.data(), 21);
  for (uint64_t i = 0; i < 21; ++i)
    random_service()->normal(5, 9, 1 + i, again.data() + i, 1);
  EXPECT_EQ(normal, again);
}

TEST(Random, StreamsAndSeedsDiffer) {
  EXPECT_NE(philox(1, 2, 3), philox(1, 3, 3));
  EXPECT_NE(philox(1, 2, 3), philox(2, 2, 3));
  EXPECT_NE(philox(1, 2, 3), philox(1, 2, 4));
}

// With n samples the mean of uniforms is off by sqrt(1/12/n) on average; five times that is far
// out.
TEST(Random, HasTheMomentsOfItsDistributions) {
  constexpr uint64_t kSamples = 200000;
  std::vector<double> x(kSamples);
  auto moments = [&] {
    double mean = 0, square = 0;
    for (double value : x) {
      mean += value / kSamples;
      square += value * value / kSamples;
    }
    return std::pair{mean, square - mean * mean};
  };

  random_service()->uniform(42, 0, 0, x.data(), kSamples);
  auto [uniform_mean, uniform_variance] = moments();
  EXPECT_NEAR(uniform_mean, 0.5, 5 * std::sqrt(1.0 / 12 / kSamples));
  EXPECT_NEAR(uniform_variance, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / kSamples));
  for (double value : x)
    ASSERT_TRUE(value >= 0 && value < 1);

  random_service()->normal(42, 0, 0, x.data(), kSamples);
  auto [normal_mean, normal_variance] = moments();
  EXPECT_NEAR(normal_mean, 0, 5 * std::sqrt(1.0 / kSamples));
  EXPECT_NEAR(normal_variance, 1, 5 * std::sqrt(2.0 / kSamples));
}

}  // namespace
}  // namespace tenon::host
