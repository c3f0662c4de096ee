// SPDX-License-Identifier: Apache-2.0
// Against the optimal brain surgeon by an inverse for each weight that goes.
#include "surgeon.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tenon::recovery {
namespace {

constexpr double kExact = 1e-9;

Matrix draw(int64_t rows, int64_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> number;
  return Matrix::NullaryExpr(rows, cols, [&] { return number(random); });
}

// Inputs that go together and differ in size.
Matrix seconds_of(int64_t n, uint32_t seed) {
  Matrix mixed = draw(400, n, seed) * draw(n, n, seed + 1);
  for (int64_t c = 0; c < n; ++c)
    mixed.col(c) *= 0.2 + static_cast<double>(c % 5);
  return mixed.transpose() * mixed / 400;
}

double missed(const Matrix& now, const Matrix& before, const Matrix& seconds) {
  Matrix off = now - before;
  return (off * seconds).cwiseProduct(off).sum();
}

// Column after column: what goes is given to those behind it, by the inverse of their moments.
Matrix by_inverses(Matrix w, const Matrix& seconds, const Matrix& after) {
  const Eigen::Index n = w.cols();
  for (Eigen::Index at = 0; at < n; ++at) {
    Matrix inverse = seconds.bottomRightCorner(n - at, n - at).inverse();
    for (Eigen::Index r = 0; r < w.rows(); ++r)
      if (after(r, at) == 0) w.row(r).tail(n - at) -= w(r, at) / inverse(0, 0) * inverse.row(0);
  }
  return w;
}

TEST(Surgeon, WhatStaysMakesUpForWhatWent) {
  const Matrix seconds = seconds_of(12, 1), before = draw(5, 12, 3);
  Matrix w = before;

  ASSERT_TRUE(take_out(&w, seconds, {.sparsity = 0.5, .block = 4, .damping = 1e-12}));

  for (Eigen::Index from = 0; from < 12; from += 4)
    EXPECT_EQ((w.middleCols(from, 4).array() == 0).count(), 10) << "of the block at " << from;
  EXPECT_LT((w - by_inverses(before, seconds, w)).norm(), 1e-6 * before.norm());
}

TEST(Surgeon, OneWeightCostsItsSquareOverTheInverse) {
  const Matrix seconds = seconds_of(6, 5), before = draw(1, 6, 7);
  Matrix inverse = seconds.inverse(), w = before;
  w(0, 0) *= 1e-3;  // the cheapest, in the first place: all others are behind it
  const Matrix given = w;

  ASSERT_TRUE(take_out(&w, seconds, {.sparsity = 1.0 / 6, .block = 6, .damping = 0}));

  ASSERT_EQ(w(0, 0), 0);
  EXPECT_NEAR(missed(w, given, seconds), given(0, 0) * given(0, 0) / inverse(0, 0), kExact);
  EXPECT_GT((w - given).rightCols(5).norm(), 1e-8);
}

TEST(Surgeon, WithIndependentInputsTheSmallestGoAndNothingElseMoves) {
  Matrix seconds = Matrix::Zero(4, 4);
  seconds.diagonal() << 1, 100, 1, 1;
  Matrix w(1, 4);
  w << 3, -1, 2, -4;  // costs 9, 100, 4, 16

  ASSERT_TRUE(take_out(&w, seconds, {.sparsity = 0.5, .block = 4, .damping = 0}));

  Matrix wanted(1, 4);
  wanted << 0, -1, 0, -4;
  EXPECT_EQ(w, wanted);
}

TEST(Surgeon, LosesLessThanSizesAndThanSizesTimesInputs) {
  const Matrix seconds = seconds_of(64, 11), before = draw(16, 64, 13);
  Matrix ours = before;
  ASSERT_TRUE(take_out(&ours, seconds, {.sparsity = 0.5, .block = 16}));

  auto dropped = [&](bool by_inputs) {
    Matrix w = before;
    for (Eigen::Index r = 0; r < w.rows(); ++r) {
      std::vector<std::pair<double, Eigen::Index>> order;
      for (Eigen::Index c = 0; c < w.cols(); ++c)
        order.emplace_back(std::abs(w(r, c)) * (by_inputs ? std::sqrt(seconds(c, c)) : 1), c);
      std::sort(order.begin(), order.end());
      for (size_t i = 0; i < order.size() / 2; ++i)
        w(r, order[i].second) = 0;
    }
    return missed(w, before, seconds);
  };

  EXPECT_LT(missed(ours, before, seconds), 0.8 * dropped(true));
  EXPECT_LT(missed(ours, before, seconds), 0.5 * dropped(false));
}

TEST(Surgeon, OfNeighboursSoManyStay) {
  const Matrix seconds = seconds_of(12, 17), before = draw(6, 12, 19);
  Matrix w = before;

  ASSERT_TRUE(take_out(&w, seconds, {.keep = 2, .of = 4, .block = 6, .damping = 1e-12}));

  for (Eigen::Index r = 0; r < 6; ++r)
    for (Eigen::Index c = 0; c < 12; c += 4)
      EXPECT_EQ((w.block(r, c, 1, 4).array() == 0).count(), 2);
  EXPECT_LT((w - by_inverses(before, seconds, w)).norm(), 1e-6 * before.norm());
}

TEST(Surgeon, WhatIsZeroStaysSo) {
  const Matrix seconds = seconds_of(8, 23);
  Matrix w = draw(3, 8, 29);
  w.col(5).setZero();
  w(1, 2) = 0;

  ASSERT_TRUE(take_out(&w, seconds, {.sparsity = 0, .block = 4}));

  EXPECT_TRUE(w.col(5).isZero(0));
  EXPECT_EQ(w(1, 2), 0);
  EXPECT_EQ((w.array() == 0).count(), 4);
}

// Zeros are given something for what went before them; by that they would be taken for weights.
TEST(Surgeon, WhatWasZeroGoesBeforeWeights) {
  const Matrix seconds = seconds_of(32, 37);
  Matrix before = draw(16, 32, 41);
  const Matrix coins = draw(16, 32, 43);
  for (Eigen::Index r = 0; r < 16; ++r)
    for (Eigen::Index c = 0; c < 32; ++c)
      if (coins(r, c) < 0) before(r, c) = 0;
  Matrix run = before, block = before;

  ASSERT_TRUE(take_out(&run, seconds, {.keep = 2, .of = 4, .block = 8}));
  ASSERT_TRUE(take_out(&block, seconds, {.sparsity = 0.75, .block = 8}));

  for (Eigen::Index r = 0; r < 16; ++r)
    for (Eigen::Index c = 0; c < 32; c += 4)
      EXPECT_EQ((run.block(r, c, 1, 4).array() == 0).count(),
                std::max<Eigen::Index>(2, (before.block(r, c, 1, 4).array() == 0).count()))
          << r << " " << c;
  for (Eigen::Index c = 0; c < 32; c += 8)
    EXPECT_EQ((block.middleCols(c, 8).array() == 0).count(), 96) << c;
}

TEST(Surgeon, InputsThatAreNothingSayNothing) {
  Matrix w = draw(3, 4, 31);
  const Matrix before = w;

  EXPECT_FALSE(take_out(&w, Matrix::Zero(4, 4), {}));

  EXPECT_EQ(w, before);
}

}  // namespace
}  // namespace tenon::recovery
