// SPDX-License-Identifier: Apache-2.0
#include "least_squares.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tenon::recovery {
namespace {

Matrix draw(int64_t rows, int64_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> number;
  return Matrix::NullaryExpr(rows, cols, [&] { return number(random); });
}

// y = x W' + b over rows whose mean is far from 0.
struct Planted {
  Matrix x = draw(200, 6, 1).array() + 3;
  Fit truth{draw(4, 6, 2), draw(4, 1, 3)};
  Fit present{Matrix::Zero(4, 6), Vector::Zero(4)};
  Matrix y = (x * truth.weight.transpose()).rowwise() + truth.bias.transpose();
  Moments moments{6, 4};

  Planted() {
    moments.add(x.topRows(77), y.topRows(77));  // in two batches
    moments.add(x.bottomRows(123), y.bottomRows(123));
  }
};

TEST(LeastSquares, AnAffineMapIsFound) {
  Planted planted;

  Fit fit = planted.moments.ridge(planted.present, 1e-12, true);

  EXPECT_LT((fit.weight - planted.truth.weight).norm(), 1e-7);
  EXPECT_LT((fit.bias - planted.truth.bias).norm(), 1e-6);
}

TEST(LeastSquares, WithoutABiasThePresentOneStays) {
  Planted planted;
  planted.present.bias = planted.truth.bias;

  Fit fit = planted.moments.ridge(planted.present, 1e-12, false);

  EXPECT_LT((fit.weight - planted.truth.weight).norm(), 1e-7);
  EXPECT_EQ(fit.bias, planted.truth.bias);
}

// Each output by QR over the inputs whose weights are not zero.
TEST(LeastSquares, WeightsThatAreZeroStayAndTheOthersMakeUp) {
  Planted planted;
  planted.present.weight = draw(4, 6, 9);
  planted.present.bias = draw(4, 1, 10);
  const std::vector<std::vector<int>> free{{0, 1, 2, 3, 4, 5}, {0, 2, 5}, {}, {1}};
  for (int row = 0; row < 4; ++row)
    for (int c = 0; c < 6; ++c)
      if (std::find(free[row].begin(), free[row].end(), c) == free[row].end())
        planted.present.weight(row, c) = 0;

  Fit fit = planted.moments.ridge(planted.present, 1e-12, true, true);

  for (int row = 0; row < 4; ++row) {
    const auto n = static_cast<Eigen::Index>(free[row].size());
    Matrix a(200, n + 1);
    a.col(n).setOnes();
    for (Eigen::Index i = 0; i < n; ++i)
      a.col(i) = planted.x.col(free[row][static_cast<size_t>(i)]);
    Vector wanted = a.colPivHouseholderQr().solve(Vector(planted.y.col(row)));
    Vector whole = Vector::Zero(6);
    for (Eigen::Index i = 0; i < n; ++i)
      whole[free[row][static_cast<size_t>(i)]] = wanted[i];
    EXPECT_LT((fit.weight.row(row).transpose() - whole).norm(), 1e-6) << row;
    // What has no weights is nobody's channel: it stays as it is.
    EXPECT_NEAR(fit.bias[row], n > 0 ? wanted[n] : planted.present.bias[row], 1e-6) << row;
  }
}

TEST(LeastSquares, DampingHoldsTheWeightsWhereTheyAre) {
  Planted planted;
  planted.present.weight = draw(4, 6, 9);
  // By the normal equations of centred rows, in another way: rows of sqrt(damping) are appended.
  double damping = 0.3;
  Matrix x = planted.x.rowwise() - planted.x.colwise().mean();
  Matrix y = planted.y.rowwise() - planted.y.colwise().mean();
  double mean = x.squaredNorm() / 200 / 6;
  Matrix more = std::sqrt(200 * damping * mean) * Matrix::Identity(6, 6);
  Matrix a(206, 6), b(206, 4);
  a << x, more;
  b << y, more * planted.present.weight.transpose();
  Matrix wanted = a.colPivHouseholderQr().solve(b).transpose();

  Fit fit = planted.moments.ridge(planted.present, damping, true);

  EXPECT_LT((fit.weight - wanted).norm(), 1e-8);
}

TEST(LeastSquares, WhatRowsDoNotTellStaysAsItIs) {
  Fit present{draw(2, 3, 4), Vector::Zero(2)};
  Moments moments(3, 2);
  Matrix x = draw(50, 3, 5);
  x.col(1).setZero();  // a dead input
  moments.add(x, draw(50, 2, 6));

  Fit fit = moments.ridge(present, 1e-6, true);

  EXPECT_EQ(fit.weight.col(1), present.weight.col(1));
}

TEST(LeastSquares, ErrorsAreThoseOfTheRows) {
  Planted planted;
  Fit fit{draw(4, 6, 7), draw(4, 1, 8)};

  Matrix off = planted.y - ((planted.x * fit.weight.transpose()).rowwise() + fit.bias.transpose());

  EXPECT_NEAR(planted.moments.error(fit), off.squaredNorm() / 200, 1e-8 * off.squaredNorm());
  Matrix centred = planted.y.rowwise() - planted.y.colwise().mean();
  EXPECT_NEAR(planted.moments.spread(), centred.squaredNorm() / 200, 1e-8);
}

}  // namespace
}  // namespace tenon::recovery
