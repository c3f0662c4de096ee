// SPDX-License-Identifier: Apache-2.0
// The elementary functions of generated code against f64.

#include <cstring>

#include "expr_nodes.h"
#include "kernels/pointwise.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

// Every 8191st bit pattern of f32, and numbers of moderate size.
std::vector<float> numbers() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 8191) {
    const auto narrow = static_cast<uint32_t>(bits);
    std::memcpy(&x.emplace_back(), &narrow, 4);
  }
  for (int i = -50000; i < 50000; ++i)
    x.push_back(static_cast<float>(i) * 2.1e-3F);
  return x;
}

// The parameter: the level that code is made for.
class PointwiseCodeAccuracy : public testing::TestWithParam<Level> {
 protected:
  void SetUp() override {
    if (GetParam() > best_level()) GTEST_SKIP() << "no " << level_name(GetParam()) << " here";
  }
  void expect_within(uint32_t opcode, double (*want)(double), double limit) {
    const std::vector<float> x = numbers();
    const tn_expr_node nodes[] = {input(0), op(opcode, 0)};
    const uint32_t results[] = {1};
    const int64_t dims[] = {static_cast<int64_t>(x.size())};
    const PointwiseEdge edges[] = {{ElementType::kF32, {}, {1}}};
    PointwisePlan plan;
    ASSERT_EQ(plan.make({nodes, results, dims, edges, edges, GetParam()}), "");
    ASSERT_EQ(plan.how(), "generated");
    std::vector<float> y(x.size());
    const void* source = x.data();
    void* target = y.data();
    plan.run(make_context(GetParam()), {&source, 1}, {&target, 1});
    expect_ulps(x, y, want, limit);
  }
};

TEST_P(PointwiseCodeAccuracy, Exp) {
  expect_within(TN_EXPR_EXP, std::exp, 1.1);
}
TEST_P(PointwiseCodeAccuracy, Tanh) {
  expect_within(TN_EXPR_TANH, std::tanh, GetParam() == Level::kAvx512 ? 1.1 : 1.9);
}
TEST_P(PointwiseCodeAccuracy, Log) {
  expect_within(TN_EXPR_LOG, std::log, 1.1);
}
TEST_P(PointwiseCodeAccuracy, Erf) {
  expect_within(TN_EXPR_ERF, std::erf, 2.2);
}
TEST_P(PointwiseCodeAccuracy, Log1p) {
  expect_within(TN_EXPR_LOG1P, std::log1p, 1.5);
}
TEST_P(PointwiseCodeAccuracy, Expm1) {
  expect_within(TN_EXPR_EXPM1, std::expm1, 3);
}
TEST_P(PointwiseCodeAccuracy, Hyperbolic) {
  expect_within(TN_EXPR_SINH, std::sinh, 4);
  expect_within(TN_EXPR_COSH, std::cosh, 4);
  expect_within(TN_EXPR_ASINH, std::asinh, 4);
  expect_within(TN_EXPR_ACOSH, std::acosh, 4);
  expect_within(TN_EXPR_ATANH, std::atanh, 4);
}
TEST_P(PointwiseCodeAccuracy, Trigonometric) {
  expect_within(TN_EXPR_SIN, std::sin, 1);
  expect_within(TN_EXPR_COS, std::cos, 1);
  expect_within(TN_EXPR_TAN, std::tan, 2.5);
  expect_within(TN_EXPR_ASIN, std::asin, 2);
  expect_within(TN_EXPR_ACOS, std::acos, 2);
  expect_within(TN_EXPR_ATAN, std::atan, 2);
}
TEST_P(PointwiseCodeAccuracy, Sigmoid) {
  expect_within(
      TN_EXPR_SIGMOID,
      [](double v) { return v < 0 ? std::exp(v) / (1 + std::exp(v)) : 1 / (1 + std::exp(-v)); }, 3);
}

// sin(a) b + exp(b) cos(a), at every length of a last vector.
TEST_P(PointwiseCodeAccuracy, KeepsItsRegistersWhereAFunctionIsCalled) {
  const tn_expr_node nodes[] = {input(0),
                                input(1),
                                op(TN_EXPR_SIN, 0),
                                op(TN_EXPR_EXP, 1),
                                op(TN_EXPR_COS, 0),
                                op(TN_EXPR_MUL, 2, 1),
                                op(TN_EXPR_MUL, 3, 4),
                                op(TN_EXPR_ADD, 5, 6)};
  const uint32_t results[] = {7};
  std::vector<float> a = uniform(150, -10.0F, 10.0F);
  const std::vector<float> b = uniform(150, -2.0F, 2.0F, 2);
  for (uint64_t i = 0; i < a.size(); i += 7)
    a[i] *= 1e20F;
  for (int64_t n = 1; n <= 150; ++n) {
    const PointwiseEdge edges[] = {{ElementType::kF32, {}, {1}}, {ElementType::kF32, {}, {1}}};
    PointwisePlan plan;
    ASSERT_EQ(plan.make({nodes, results, {&n, 1}, edges, {edges, 1}, GetParam()}), "");
    ASSERT_EQ(plan.how(), "generated");
    std::vector<float> y(static_cast<uint64_t>(n) + 1, 7.0F);
    const void* sources[] = {a.data(), b.data()};
    void* target = y.data();
    plan.run(make_context(GetParam()), sources, {&target, 1});
    for (uint64_t i = 0; i + 1 < y.size(); ++i) {
      const double x = a[i];
      ASSERT_NEAR(y[i], std::sin(x) * b[i] + std::exp(b[i]) * std::cos(x), 2e-6)
          << i << " of " << n;
    }
    EXPECT_EQ(y.back(), 7.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels,
                         PointwiseCodeAccuracy,
                         testing::Values(Level::kAvx2, Level::kAvx512),
                         level_of);

}  // namespace
}  // namespace tenon::onednn::kernels
