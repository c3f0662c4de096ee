// SPDX-License-Identifier: Apache-2.0
#include "algorithms/low_rank.hpp"

#include <gtest/gtest.h>

#include "plugins/decomposer/planted.hpp"

namespace tenon::decomposer {
namespace {

MatrixView view(const Matrix& m) {
  return {m.data(), m.rows(), m.cols()};
}

double relative(const Matrix& a, const Matrix& b) {
  return (a - b).norm() / a.norm();
}

TEST(LowRank, OfADiagonalMatrixIsByHand) {
  Matrix m = Matrix::Zero(3, 3);
  m.diagonal() << 3, 2, 1;
  Spectrum spectrum = short_side_spectrum(view(m));

  LowRank thin = truncate(view(m), spectrum, 2);
  Matrix product = thin.left * thin.right;

  EXPECT_NEAR(spectrum.values[0], 3, 1e-12);
  EXPECT_NEAR(spectrum.values[2], 1, 1e-12);
  EXPECT_NEAR(product(0, 0), 3, 1e-12);
  EXPECT_NEAR(product(1, 1), 2, 1e-12);
  EXPECT_NEAR(product(2, 2), 0, 1e-12);
  EXPECT_NEAR(truncation_error(spectrum.values, 2), std::sqrt(1.0 / 14), 1e-12);
}

TEST(LowRank, RecoversAPlantedRankWideAndTall) {
  for (auto [rows, cols] : {std::pair{30, 80}, {80, 30}}) {
    Matrix m = test::planted_matrix(rows, cols, 5, 0, 21);
    LowRank thin = truncate(view(m), short_side_spectrum(view(m)), 5);
    EXPECT_LE(relative(m, thin.left * thin.right), 1e-7);
    EXPECT_EQ(thin.left.cols(), 5);
  }
}

TEST(LowRank, ErrorIsWhatTruncationErrorSays) {
  Matrix m = test::random_matrix(20, 33, 8);
  Spectrum spectrum = short_side_spectrum(view(m));
  LowRank thin = truncate(view(m), spectrum, 7);
  EXPECT_NEAR(relative(m, thin.left * thin.right), truncation_error(spectrum.values, 7), 1e-9);
}

TEST(LowRank, FactorsHaveEqualNorms) {
  Matrix m = 1e3 * test::planted_matrix(16, 24, 4, 0, 4);
  LowRank thin = truncate(view(m), short_side_spectrum(view(m)), 4);
  EXPECT_NEAR(thin.left.norm() / thin.right.norm(), 1, 1e-6);
}

TEST(LowRank, StaysFiniteBeyondTheRank) {
  Matrix m = test::planted_matrix(12, 20, 2, 0, 9);
  LowRank thin = truncate(view(m), short_side_spectrum(view(m)), 12);
  EXPECT_TRUE(thin.left.allFinite() && thin.right.allFinite());
  EXPECT_LE(thin.right.norm(), 10 * std::sqrt(m.norm()));
  EXPECT_LE(relative(m, thin.left * thin.right), 1e-7);
}

}  // namespace
}  // namespace tenon::decomposer
