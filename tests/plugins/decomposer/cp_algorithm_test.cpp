// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "algorithms/cp.hpp"
#include "plugins/decomposer/planted.hpp"

namespace tenon::decomposer {
namespace {

Kernel rebuilt(const Cp& parts) {
  int64_t height = parts.rows.rows(), width = parts.columns.rows();
  Kernel out{parts.out.rows(), parts.in.rows(), height * width, {}};
  for (int64_t o = 0; o < out.n_out; ++o)
    for (int64_t i = 0; i < out.n_in; ++i)
      for (int64_t k = 0; k < out.window; ++k) {
        double sum = 0;
        for (int64_t r = 0; r < parts.out.cols(); ++r)
          sum += parts.out(o, r) * parts.in(i, r) * parts.rows(k / width, r) *
                 parts.columns(k % width, r);
        out.numbers.push_back(sum);
      }
  return out;
}
Cp random_parts(int64_t n_out, int64_t n_in, int64_t rank, uint64_t seed) {
  Cp out;
  out.out = test::random_matrix(n_out, rank, seed);
  out.in = test::random_matrix(n_in, rank, seed + 1);
  out.rows = test::random_matrix(3, rank, seed + 2);
  out.columns = test::random_matrix(3, rank, seed + 3);
  return out;
}
double difference(const Kernel& a, const Kernel& b) {
  return (a.by_out() - b.by_out()).norm() / a.by_out().norm();
}

TEST(Cp, OfOneOuterProductIsExact) {
  Kernel weight = rebuilt(random_parts(5, 4, 1, 3));
  Cp parts = cp(weight, random_parts(5, 4, 1, 50), {50, 0});
  EXPECT_LE(difference(weight, rebuilt(parts)), 1e-7);
}

TEST(Cp, RecoversAPlantedRank) {
  Kernel weight = rebuilt(random_parts(16, 12, 3, 7));
  Cp parts = cp(weight, random_parts(16, 12, 3, 60), {500, 1e-12});
  EXPECT_LE(difference(weight, rebuilt(parts)), 1e-5);
  EXPECT_LE(parts.cancellation, 10);
}

TEST(Cp, ErrorIsThatOfTheRebuiltWeight) {
  Kernel weight = test::random_kernel(10, 8, 9, 5);
  Cp parts = cp(weight, random_parts(10, 8, 4, 70), {10, 0});
  EXPECT_NEAR(difference(weight, rebuilt(parts)), parts.error, 1e-6);
}

TEST(Cp, MoreStepsAreNotWorse) {
  Kernel weight = test::random_kernel(10, 8, 9, 5);
  double before = 2;
  for (int64_t iterations : {0, 1, 5, 25}) {
    double error = cp(weight, random_parts(10, 8, 4, 70), {iterations, 0}).error;
    EXPECT_LE(error, before + 1e-9) << iterations;
    before = error;
  }
}

TEST(Cp, FactorsShareTheSize) {
  Kernel weight = rebuilt(random_parts(6, 5, 1, 9));
  for (double& number : weight.numbers)
    number *= 1e4;
  Cp parts = cp(weight, random_parts(6, 5, 1, 80), {50, 0});
  EXPECT_NEAR(parts.out.norm() / parts.rows.norm(), 1, 1e-9);
  EXPECT_NEAR(parts.in.norm() / parts.columns.norm(), 1, 1e-9);
}

}  // namespace
}  // namespace tenon::decomposer
