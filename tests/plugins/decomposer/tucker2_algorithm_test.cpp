// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "algorithms/tucker2.hpp"
#include "plugins/decomposer/planted.hpp"

namespace tenon::decomposer {
namespace {

double rebuilt_error(const Kernel& weight, const Tucker2& parts) {
  double squares = 0;
  for (int64_t o = 0; o < weight.n_out; ++o) {
    Matrix slice = Matrix::Zero(weight.n_in, weight.window);
    for (int64_t a = 0; a < parts.core.n_out; ++a)
      slice += parts.out(o, a) * (parts.in * parts.core.of_out(a));
    squares += (slice - weight.of_out(o)).squaredNorm();
  }
  return std::sqrt(squares / weight.squared_norm());
}

TEST(Tucker2, RecoversPlantedRanks) {
  Kernel weight = test::planted_kernel(test::random_kernel(4, 6, 9, 1), 20, 16, 2);
  Tucker2 parts = tucker2(weight, modes_of(weight), 4, 6, {});
  EXPECT_LE(rebuilt_error(weight, parts), 1e-7);
}

TEST(Tucker2, ErrorIsThatOfTheRebuiltWeight) {
  Kernel weight = test::random_kernel(24, 18, 9, 3);
  for (int64_t iterations : {0, 5}) {
    Tucker2 parts = tucker2(weight, modes_of(weight), 7, 5, {iterations, 0});
    EXPECT_NEAR(rebuilt_error(weight, parts), parts.error, 1e-9);
  }
}

TEST(Tucker2, HooiIsNoWorseThanHosvd) {
  for (uint64_t seed : {5, 6, 7, 8}) {
    Kernel weight = test::random_kernel(32, 24, 9, seed);
    Modes modes = modes_of(weight);
    double hosvd = tucker2(weight, modes, 6, 8, {0, 0}).error;
    double hooi = tucker2(weight, modes, 6, 8, {10, 0}).error;
    EXPECT_LT(hooi, hosvd) << seed;
  }
}

// Figures of an independent NumPy version for a Gaussian weight of this shape: 0.921, 0.901.
TEST(Tucker2, ErrorOfARandomWeightIsAsElsewhere) {
  Kernel weight = test::random_kernel(256, 128, 9, 17);
  Modes modes = modes_of(weight);
  EXPECT_NEAR(tucker2(weight, modes, 32, 64, {0, 0}).error, 0.921, 0.002);
  EXPECT_NEAR(tucker2(weight, modes, 32, 64, {5, 0}).error, 0.901, 0.002);
}

TEST(Tucker2, FullRanksAreExact) {
  Kernel weight = test::random_kernel(8, 6, 9, 4);
  Tucker2 parts = tucker2(weight, modes_of(weight), 8, 6, {});
  EXPECT_LE(rebuilt_error(weight, parts), 1e-12);
}

TEST(Tucker2, TakesAWindowOfOneChannel) {
  Kernel weight = test::random_kernel(5, 1, 3, 4);
  Tucker2 parts = tucker2(weight, modes_of(weight), 3, 1, {});
  EXPECT_LE(rebuilt_error(weight, parts), 1e-7);
}

}  // namespace
}  // namespace tenon::decomposer
