// SPDX-License-Identifier: Apache-2.0
#include "algorithms/evbmf.hpp"

#include <gtest/gtest.h>

#include "algorithms/low_rank.hpp"
#include "plugins/decomposer/planted.hpp"

namespace tenon::decomposer {
namespace {

Evbmf found(const Matrix& m) {
  return evbmf(short_side_values({m.data(), m.rows(), m.cols()}), m.rows(), m.cols());
}

struct Planted {
  int64_t rows, cols, rank;
  double noise;
};

class EvbmfPlanted : public testing::TestWithParam<Planted> {};

TEST_P(EvbmfPlanted, RecoversRankAndNoise) {
  Planted p = GetParam();
  for (uint64_t seed : {1, 2, 3}) {
    Evbmf got = found(test::planted_matrix(p.rows, p.cols, p.rank, p.noise, 100 * seed));
    EXPECT_EQ(got.rank, p.rank) << seed;
    EXPECT_NEAR(got.variance, p.noise * p.noise, 0.05 * p.noise * p.noise) << seed;
  }
}

// The shapes of unfolded convolutions, tall ones too.
INSTANTIATE_TEST_SUITE_P(Shapes,
                         EvbmfPlanted,
                         testing::Values(Planted{64, 576, 8, 1},
                                         Planted{128, 1152, 16, 1},
                                         Planted{64, 576, 8, 3},
                                         Planted{256, 128, 10, 1},
                                         Planted{64, 64, 5, 1}));

TEST(Evbmf, FindsNoRankInNoise) {
  EXPECT_EQ(found(test::random_matrix(64, 576, 7)).rank, 0);
  EXPECT_EQ(found(test::random_matrix(576, 64, 7)).rank, 0);
}

TEST(Evbmf, FindsTheRankOfAMatrixWithoutNoise) {
  EXPECT_EQ(found(test::planted_matrix(40, 90, 6, 0, 11)).rank, 6);
}

TEST(Evbmf, DoesNotDependOnTheScale) {
  Matrix m = test::planted_matrix(64, 200, 7, 1, 5);
  Matrix tiny = 1e-6 * m;
  EXPECT_EQ(found(m).rank, found(tiny).rank);
}

TEST(Evbmf, TakesARow) {
  Matrix row = test::random_matrix(1, 50, 3);
  Evbmf got = found(row);
  EXPECT_LE(got.rank, 1);
  EXPECT_TRUE(std::isfinite(got.variance));
}

TEST(Evbmf, HasNoRankForZeros) {
  EXPECT_EQ(evbmf(Vector::Zero(4), 4, 8).rank, 0);
}

}  // namespace
}  // namespace tenon::decomposer
