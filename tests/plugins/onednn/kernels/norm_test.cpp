// SPDX-License-Identifier: Apache-2.0
// LayerNorm, RMSNorm and L2 normalization against f64 loops.

#include "kernels/norm.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class NormTest : public EachLevel {};

struct Moments {
  double mean;
  double factor;
};
Moments moments(Norm kind, const std::vector<double>& x, double epsilon) {
  double mean = 0;
  double square = 0;
  const double n = static_cast<double>(x.size());
  for (double v : x)
    mean += v / n;
  if (kind == Norm::kRms || kind == Norm::kL2) mean = 0;
  for (double v : x)
    square += (v - mean) * (v - mean);
  if (kind == Norm::kL2) return {0, 1 / std::max(std::sqrt(square), epsilon)};
  return {mean, 1 / std::sqrt(square / n + epsilon)};
}

TEST_P(NormTest, AgreesWithF64AtEveryLength) {
  constexpr uint64_t kRows = 6;  // a group of rows, and some of the next
  for (int64_t n : {1, 7, 16, 384, 768, 1000, 8192, 8193, 20001}) {
    const uint64_t width = static_cast<uint64_t>(n);
    const std::vector<float> x = uniform(kRows * width, -1, 5);
    const std::vector<float> gamma = uniform(width, 0.5, 2, 2);
    const std::vector<float> beta = uniform(width, -1, 1, 3);
    for (Norm kind : {Norm::kLayer, Norm::kRms, Norm::kL2, Norm::kCentre}) {
      std::vector<float> y(kRows * width + 1, 7.0F);
      std::vector<float> mean(kRows);
      std::vector<float> inv_std(kRows);
      normalize(context_, {.kind = kind,
                           .src = {x.data()},
                           .dst = {y.data()},
                           .gamma = gamma.data(),
                           .beta = beta.data(),
                           .mean = mean.data(),
                           .inv_std = inv_std.data(),
                           .rows = kRows,
                           .n = n,
                           .epsilon = 1e-5F});

      for (uint64_t r = 0; r < kRows; ++r) {
        const std::vector<double> row(x.begin() + static_cast<int64_t>(r) * n,
                                      x.begin() + static_cast<int64_t>(r + 1) * n);
        const Moments want = moments(kind, row, 1e-5F);
        const double factor = kind == Norm::kCentre ? 1.0 : want.factor;
        EXPECT_NEAR(mean[r], want.mean, 1e-6 * std::fabs(want.mean));
        EXPECT_NEAR(inv_std[r], want.factor, 2e-6 * want.factor);
        for (uint64_t i = 0; i < width; ++i) {
          const double value = (row[i] - want.mean) * factor * gamma[i] + beta[i];
          ASSERT_NEAR(y[r * width + i], value, 4e-6) << n << " at " << i;
        }
      }
      EXPECT_EQ(y.back(), 7.0F);
    }
  }
}

// The front of a transformer block: s = x + r goes on as it is, the norm as u8 and bf16.
TEST_P(NormTest, AddsTheResidualAndWritesThreeForms) {
  for (int64_t n : {384, 9000}) {
    const uint64_t width = static_cast<uint64_t>(n);
    std::vector<float> x = uniform(2 * width, -1, 5);
    const std::vector<float> r = uniform(2 * width, -2, 2, 2);
    std::vector<double> sum(2 * width);
    for (uint64_t i = 0; i < sum.size(); ++i)
      sum[i] = static_cast<double>(x[i] + r[i]);
    std::vector<uint8_t> u8(2 * width);
    std::vector<uint16_t> bf16(2 * width);
    normalize(context_, {.src = {x.data()},
                         .residual = {r.data()},
                         .sum = {x.data()},
                         .dst = {bf16.data(), ElementType::kBf16, {}},
                         .dst2 = {u8.data(), ElementType::kU8, {0.03F, 120}},
                         .rows = 2,
                         .n = n,
                         .epsilon = 1e-12F});
    std::vector<float> wide(2 * width);
    context_.table->load_f32({bf16.data(), ElementType::kBf16, {}}, 0, 2 * n, wide.data());

    const Moments want = moments(Norm::kLayer, {sum.begin(), sum.begin() + n}, 1e-12);
    for (uint64_t i = 0; i < width; ++i) {
      const double value = (sum[i] - want.mean) * want.factor;
      ASSERT_EQ(x[i], static_cast<float>(sum[i]));
      ASSERT_NEAR(u8[i], value / 0.03 + 120, 0.501) << i;
      ASSERT_NEAR(wide[i], value, std::fabs(value) / 256 + 1e-5) << i;
    }
  }
}

TEST_P(NormTest, MultipliesTheLastFormByFactors) {
  for (int64_t n : {37, 384, 9000}) {
    const auto width = static_cast<uint64_t>(n);
    const std::vector<float> x = uniform(width, -1, 5);
    const std::vector<float> factors = uniform(width, 0.1F, 9, 3);
    const Moments want = moments(Norm::kLayer, {x.begin(), x.end()}, 1e-12);
    std::vector<float> plain(width), scaled(width);
    std::vector<uint8_t> u8(width);
    NormArgs args{.src = {x.data()},
                  .dst = {plain.data()},
                  .dst2 = {u8.data(), ElementType::kU8, {0.1F, 120}},
                  .factors = factors.data(),
                  .rows = 1,
                  .n = n,
                  .epsilon = 1e-12F};
    normalize(context_, args);
    args.dst = {scaled.data()};
    args.dst2 = {};
    normalize(context_, args);
    for (uint64_t i = 0; i < width; ++i) {
      const double value = (x[i] - want.mean) * want.factor;
      const double product = value * double{factors[i]};
      ASSERT_NEAR(plain[i], value, 4e-6) << n << " at " << i;
      ASSERT_NEAR(scaled[i], product, 4e-5) << n << " at " << i;
      ASSERT_NEAR(u8[i], std::clamp(product / 0.1 + 120, 0.0, 255.0), 0.501) << n << " at " << i;
    }
  }
}

// A mean of f32 alone is off by 1e-4 of the spread at 1,000, by 2 % at 100,000.
TEST_P(NormTest, KeepsAccuracyUnderALargeOffset) {
  for (float offset : {1e3F, -1e4F, 1e5F}) {
    for (uint64_t n : {uint64_t{512}, uint64_t{9000}}) {
      std::vector<float> x = uniform(n, 0, 1);
      for (float& value : x)
        value += offset;
      const Moments want = moments(Norm::kLayer, {x.begin(), x.end()}, 0);
      for (Norm kind : {Norm::kLayer, Norm::kCentre}) {
        std::vector<float> y(n);
        std::vector<float> inv_std(1);
        normalize(context_, {.kind = kind,
                             .src = {x.data()},
                             .dst = {y.data()},
                             .inv_std = inv_std.data(),
                             .rows = 1,
                             .n = static_cast<int64_t>(n)});

        EXPECT_NEAR(inv_std[0], want.factor, 4e-6 * want.factor);
        const double factor = kind == Norm::kCentre ? 1.0 : want.factor;
        for (uint64_t i = 0; i < n; ++i)
          ASSERT_NEAR(y[i], (x[i] - want.mean) * factor, 8e-6) << offset << " at " << i;
      }
    }
  }
}

TEST_P(NormTest, L2OfZerosStaysZero) {
  std::vector<float> x(20, 0.0F);
  normalize(context_, {.kind = Norm::kL2,
                       .src = {x.data()},
                       .dst = {x.data()},
                       .rows = 2,
                       .n = 10,
                       .epsilon = 1e-12F});

  EXPECT_EQ(x, std::vector<float>(20, 0.0F));
}

TEST_P(NormTest, SpreadsNan) {
  std::vector<float> x(20, 1.0F);
  x[3] = NAN;
  normalize(context_, {.src = {x.data()}, .dst = {x.data()}, .rows = 2, .n = 10, .epsilon = 1e-5F});

  EXPECT_TRUE(std::isnan(x[0]));
  EXPECT_EQ(x[10], 0.0F);
}

TENON_EACH_LEVEL(NormTest);

}  // namespace
}  // namespace tenon::onednn::kernels
