// SPDX-License-Identifier: Apache-2.0
// The elementary functions against the C library in f64, over all exponents and the special values.

#include <cstring>

#include "tenon/expr.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Every 4099th bit pattern of f32, and the values where functions turn.
std::vector<float> sweep() {
  std::vector<float> values = {0.0F,    -0.0F,   kInf,   -kInf,   kNan,      1.0F,
                               -1.0F,   0.5F,    0.9F,   88.72F,  88.73F,    -87.4F,
                               -103.9F, -104.1F, 1e-45F, -1e-45F, 1.17e-38F, 9.01F};
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4099) {
    const uint32_t narrow = static_cast<uint32_t>(bits);
    float value = 0;
    std::memcpy(&value, &narrow, sizeof value);
    values.push_back(value);
  }
  for (int i = -200000; i < 200000; ++i)
    values.push_back(static_cast<float>(i) * 5.3e-4F);
  while (values.size() % 16 != 0)
    values.push_back(1.0F);
  return values;
}

class VectorMath : public EachLevel {
 protected:
  PointwiseOp op(uint32_t opcode) {
    const PointwiseOps* ops = nullptr;
    context_.table->pointwise_ops(&ops, &lanes_);
    return ops->op[opcode];
  }
  std::vector<float> apply(uint32_t opcode,
                           const std::vector<float>& a,
                           const std::vector<float>& b) {
    std::vector<float> out(a.size());
    PointwiseOp run = op(opcode);
    run(out.data(), {a.data(), 1}, {b.data(), 1}, {a.data(), 1},
        static_cast<int64_t>(a.size()) / lanes_);
    return out;
  }
  void expect_unary(uint32_t opcode, double (*want)(double), double limit) {
    const std::vector<float> x = sweep();
    const std::vector<float> y = apply(opcode, x, x);
    expect_ulps(x, y, want, limit);
  }
  int64_t lanes_ = 0;
};

double logistic(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

TEST_P(VectorMath, ExpIsWithinTwoUlps) {
  expect_unary(TN_EXPR_EXP, std::exp, 2.0);
}
TEST_P(VectorMath, LogIsWithinTwoUlps) {
  expect_unary(TN_EXPR_LOG, std::log, 2.0);
}
TEST_P(VectorMath, TanhIsWithinThreeUlps) {
  expect_unary(TN_EXPR_TANH, std::tanh, 3.0);
}
TEST_P(VectorMath, SigmoidIsWithinThreeUlps) {
  expect_unary(TN_EXPR_SIGMOID, logistic, 3.0);
}
TEST_P(VectorMath, ErfIsWithinTwoUlps) {
  expect_unary(TN_EXPR_ERF, std::erf, 2.0);
}
TEST_P(VectorMath, Expm1IsWithinThreeUlps) {
  expect_unary(TN_EXPR_EXPM1, std::expm1, 3.0);
}
TEST_P(VectorMath, Log1pIsWithinThreeUlps) {
  expect_unary(TN_EXPR_LOG1P, std::log1p, 3.0);
}
TEST_P(VectorMath, SinIsWithinOneUlp) {
  expect_unary(TN_EXPR_SIN, std::sin, 1.0);
}
TEST_P(VectorMath, CosIsWithinOneUlp) {
  expect_unary(TN_EXPR_COS, std::cos, 1.0);
}
TEST_P(VectorMath, SqrtIsExact) {
  expect_unary(TN_EXPR_SQRT, std::sqrt, 0.5);
}
TEST_P(VectorMath, RoundGoesToEven) {
  expect_unary(TN_EXPR_ROUND, std::nearbyint, 0.0);
}
TEST_P(VectorMath, FloorIsExact) {
  expect_unary(TN_EXPR_FLOOR, std::floor, 0.0);
}

TEST_P(VectorMath, TanhAndErfKeepTheSignOfZero) {
  const std::vector<float> x(16, -0.0F);

  for (uint32_t opcode : {TN_EXPR_TANH, TN_EXPR_ERF, TN_EXPR_SIN, TN_EXPR_EXPM1, TN_EXPR_LOG1P}) {
    const std::vector<float> y = apply(opcode, x, x);
    EXPECT_TRUE(y[0] == 0.0F && std::signbit(y[0])) << opcode;
  }
}

TEST_P(VectorMath, PowIsWithinOneUlp) {
  const std::vector<float> exponents = {-2.5F, -1.0F, 0.0F, 0.5F, 1.7F, 2.0F, 3.0F, 31.0F, 1e10F};
  std::vector<float> x;
  std::vector<float> y;
  for (float value : uniform(20000, -6.0F, 6.0F)) {
    for (float exponent : exponents) {
      x.push_back(std::exp2(value * 5) * (value < -4 ? -1.0F : 1.0F));
      y.push_back(exponent);
    }
  }
  const std::vector<float> got = apply(TN_EXPR_POW, x, y);

  double worst = 0;
  for (uint64_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, ulps(got[i], std::pow(static_cast<double>(x[i]), y[i])));
  }
  EXPECT_LE(worst, 1.0);
}

TEST_P(VectorMath, PowHasCsSpecialCases) {
  const std::vector<float> special = {0.0F, -0.0F, 1.0F, -1.0F, 2.0F, -2.0F,  3.0F,        -3.0F,
                                      0.5F, -0.5F, kInf, -kInf, kNan, 1e-42F, 16777217.0F, 1e30F};
  for (float exponent : special) {
    const std::vector<float> got = apply(TN_EXPR_POW, special, std::vector<float>(16, exponent));
    for (uint64_t i = 0; i < special.size(); ++i) {
      const double want = std::pow(static_cast<double>(special[i]), static_cast<double>(exponent));
      EXPECT_LE(ulps(got[i], want), 1.0) << special[i] << "^" << exponent << " gave " << got[i];
      EXPECT_TRUE(want != 0 || std::signbit(got[i]) == std::signbit(want))
          << special[i] << "^" << exponent;
    }
  }
}

TEST_P(VectorMath, MaxAndMinPassNanOn) {
  const std::vector<float> a = {kNan, 1.0F, -kInf, 2.0F, kNan, 1.0F, -kInf, 2.0F,
                                kNan, 1.0F, -kInf, 2.0F, kNan, 1.0F, -kInf, 2.0F};
  const std::vector<float> b = {1.0F, kNan, kInf, 3.0F, 1.0F, kNan, kInf, 3.0F,
                                1.0F, kNan, kInf, 3.0F, 1.0F, kNan, kInf, 3.0F};
  const std::vector<float> high = apply(TN_EXPR_MAX, a, b);
  const std::vector<float> low = apply(TN_EXPR_MIN, a, b);

  EXPECT_TRUE(std::isnan(high[0]) && std::isnan(high[1]) && std::isnan(low[0]) &&
              std::isnan(low[1]));
  EXPECT_EQ(high[2], kInf);
  EXPECT_EQ(low[3], 2.0F);
}

TENON_EACH_LEVEL(VectorMath);

}  // namespace
}  // namespace tenon::onednn::kernels
