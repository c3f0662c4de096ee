// SPDX-License-Identifier: Apache-2.0
// Softmax against f64 loops: row lengths around the block, masks, types, special values.

#include "kernels/softmax.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Softmax : public EachLevel {};

std::vector<double> reference(const float* x, const float* mask, int64_t n, float scale, bool log) {
  std::vector<double> y(static_cast<uint64_t>(n));
  double top = -INFINITY;
  for (uint64_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<double>(x[i]) * scale + (mask != nullptr ? mask[i] : 0.0);
    top = std::max(top, y[i]);
  }
  double sum = 0;
  for (double v : y)
    sum += std::exp(v - top);
  for (double& v : y)
    v = log ? v - top - std::log(sum) : std::exp(v - top) / sum;
  return y;
}

TEST_P(Softmax, AgreesWithF64AtEveryLength) {
  for (int64_t n : {1, 2, 15, 16, 17, 128, 1000, 4096, 4097, 20000}) {
    for (bool log : {false, true}) {
      const std::vector<float> x = uniform(static_cast<uint64_t>(3 * n), -20, 20);
      std::vector<float> y(x.size() + 1, 7.0F);
      SoftmaxArgs args{.src = {x.data()}, .dst = {y.data()}, .dims = {1, 3, 1}, .n = n};
      args.scale = 0.7F;
      args.log = log;
      softmax(context_, args);

      for (uint64_t r = 0; r < 3; ++r) {
        const uint64_t at = r * static_cast<uint64_t>(n);
        const std::vector<double> want = reference(&x[at], nullptr, n, 0.7F, log);
        for (uint64_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR(y[at + i], want[i], 4e-6 * std::fabs(want[i]) + (log ? 1e-6 : 1e-12))
              << n << " at " << i;
        }
      }
      EXPECT_EQ(y.back(), 7.0F);
    }
  }
}

// Rows of few elements have a lane each, in blocks of rows; the last block is not whole.
TEST_P(Softmax, AgreesWithF64WhereRowsAreShort) {
  constexpr uint64_t kRows = 133;
  for (uint64_t n = 1; n <= 18; ++n) {
    for (bool log : {false, true}) {
      std::vector<float> x = uniform(kRows * n, -20, 20);
      const std::vector<float> given = x;
      x.push_back(7.0F);
      SoftmaxArgs args{.src = {x.data()}, .dst = {x.data()}, .dims = {7, 1, 19}};
      args.n = static_cast<int64_t>(n);
      args.scale = 0.7F;
      args.log = log;
      softmax(context_, args);

      for (uint64_t r = 0; r < kRows; ++r) {
        const std::vector<double> want = reference(&given[r * n], nullptr, args.n, 0.7F, log);
        for (uint64_t i = 0; i < n; ++i)
          ASSERT_NEAR(x[r * n + i], want[i], 4e-6 * std::fabs(want[i]) + (log ? 1e-6 : 1e-12)) << n;
      }
      EXPECT_EQ(x.back(), 7.0F);
    }
  }
}

// Columns have a lane each, in blocks of 64 and chunks of 128 elements.
TEST_P(Softmax, AgreesWithF64OverAnAxisInFrontOfOthers) {
  for (uint64_t n : {1, 2, 7, 128, 129, 300}) {
    for (uint64_t inner : {2, 15, 64, 65, 200}) {
      for (bool log : {false, true}) {
        constexpr uint64_t kOuter = 3;
        std::vector<float> x = uniform(kOuter * n * inner, -20, 20);
        const std::vector<float> given = x;
        x.push_back(7.0F);
        SoftmaxArgs args{.src = {x.data()}, .dst = {x.data()}, .dims = {kOuter, 1, 1}};
        args.n = static_cast<int64_t>(n);
        args.inner = static_cast<int64_t>(inner);
        args.scale = 0.7F;
        args.log = log;
        softmax(context_, args);

        std::vector<float> column(n);
        for (uint64_t c = 0; c < kOuter * inner; ++c) {
          const uint64_t at = c / inner * n * inner + c % inner;
          for (uint64_t i = 0; i < n; ++i)
            column[i] = given[at + i * inner];
          const std::vector<double> want = reference(column.data(), nullptr, args.n, 0.7F, log);
          for (uint64_t i = 0; i < n; ++i)
            ASSERT_NEAR(x[at + i * inner], want[i],
                        4e-6 * std::fabs(want[i]) + (log ? 1e-6 : 1e-12))
                << n << " of " << inner;
        }
        EXPECT_EQ(x.back(), 7.0F);
      }
    }
  }
}

TEST_P(Softmax, ColumnsOfInfinitiesAreAsRowsOfThem) {
  // Columns: 1, -inf, 3; all -inf; 1, NaN, 2; +inf, 0, 1.
  std::vector<float> x = {1,   -INFINITY, 1, INFINITY,  -INFINITY, -INFINITY,
                          NAN, 0,         3, -INFINITY, 2,         1};
  softmax(context_, {.src = {x.data()}, .dst = {x.data()}, .n = 3, .inner = 4});
  EXPECT_NEAR(x[8], 1 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(x[4], 0.0F);
  for (uint64_t i : {1, 5, 9, 2, 6, 10, 3, 7, 11})
    EXPECT_TRUE(std::isnan(x[i])) << i;
}

// In place of dy.
TEST_P(Softmax, HasTheGradientOfF64AtEveryLength) {
  for (int64_t n : {1, 2, 15, 16, 17, 128, 1000}) {
    const auto count = static_cast<uint64_t>(3 * n);
    const std::vector<float> y = uniform(count, 0, 2 / static_cast<float>(n));
    const std::vector<float> dy = uniform(count, -2, 2, 2);
    std::vector<float> dx = dy;
    dx.push_back(7.0F);
    softmax_grad(
        context_,
        {.y = {y.data()}, .dy = {dx.data()}, .dst = {dx.data()}, .rows = 3, .n = n, .scale = 0.5F});
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t first = i - i % static_cast<uint64_t>(n);
      double sum = 0;
      for (uint64_t k = first; k < first + static_cast<uint64_t>(n); ++k)
        sum += double{y[k]} * double{dy[k]};
      ASSERT_NEAR(dx[i], 0.5 * double{y[i]} * (double{dy[i]} - sum), 2e-6 * double{y[i]})
          << n << " at " << i;
    }
    EXPECT_EQ(dx.back(), 7.0F);
  }
}

// scores [2, 3, 5, 70], mask [2, 1, 1, 70] with -infinity and [1, 1, 5, 70]
TEST_P(Softmax, AddsBroadcastMasks) {
  constexpr int64_t kN = 70;
  const std::vector<float> x = uniform(2 * 3 * 5 * kN, -4, 4);
  std::vector<float> mask = uniform(5 * kN, -2, 2, 2);
  mask[3] = -INFINITY;
  for (bool per_batch : {true, false}) {
    std::vector<float> y(x.size());
    SoftmaxArgs args{.src = {x.data()}, .dst = {y.data()}, .dims = {2, 3, 5}, .n = kN};
    args.scale = 0.125F;
    args.mask = {mask.data()};
    args.mask_strides[0] = per_batch ? kN : 0;
    args.mask_strides[2] = per_batch ? 0 : kN;
    args.mask_strides[3] = 1;
    softmax(context_, args);

    for (uint64_t r = 0; r < 30; ++r) {
      const float* row_mask = &mask[(per_batch ? r / 15 : r % 5) * kN];
      const std::vector<double> want = reference(&x[r * kN], row_mask, kN, 0.125F, false);
      for (uint64_t i = 0; i < kN; ++i)
        ASSERT_NEAR(y[r * kN + i], want[i], 1e-6 * want[i]);
    }
  }
}

TEST_P(Softmax, ReadsAndWritesBf16AndU8) {
  constexpr uint64_t kN = 50;
  const std::vector<float> values = uniform(kN, -3, 3);
  std::vector<uint16_t> x(kN);
  std::vector<float> rounded(kN);
  context_.table->store_f32(values.data(), kN, {x.data(), ElementType::kBf16, {}}, 0, false);
  context_.table->load_f32({x.data(), ElementType::kBf16, {}}, 0, kN, rounded.data());
  std::vector<uint8_t> y(kN);
  softmax(context_, {.src = {x.data(), ElementType::kBf16, {}},
                     .dst = {y.data(), ElementType::kU8, {1.0F / 256, 0}},
                     .n = kN});

  const std::vector<double> want = reference(rounded.data(), nullptr, kN, 1, false);
  for (uint64_t i = 0; i < kN; ++i)
    EXPECT_NEAR(y[i], want[i] * 256, 0.5001);
}

// Rows are done in groups, the last of which is not full.
TEST_P(Softmax, KeepsBf16ToHalfABit) {
  for (int64_t n : {1, 17, 128, 1000, 1008, 1009, 5000}) {
    constexpr int64_t kRows = 7;
    const auto count = static_cast<uint64_t>(kRows * n);
    std::vector<float> values = uniform(count, -20, 20);
    values[0] = -INFINITY;
    std::vector<uint16_t> x(count);
    std::vector<float> y(count);
    const Source source{x.data(), ElementType::kBf16, {}};
    const Target target{x.data(), ElementType::kBf16, {}};
    context_.table->store_f32(values.data(), kRows * n, target, 0, false);
    context_.table->load_f32(source, 0, kRows * n, values.data());
    softmax(context_, {.src = source, .dst = target, .dims = {1, 1, kRows}, .n = n});
    context_.table->load_f32(source, 0, kRows * n, y.data());
    for (uint64_t r = n == 1 ? 1 : 0; r < kRows; ++r) {
      const uint64_t at = r * static_cast<uint64_t>(n);
      const std::vector<double> want = reference(&values[at], nullptr, n, 1, false);
      for (uint64_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(static_cast<double>(y[at + i]), want[i], want[i] * (0.5 + 0.1) / 128) << n;
    }
  }
}

TEST_P(Softmax, WorksInPlaceAndOnInfinities) {
  std::vector<float> x = {1, -INFINITY, 3, -INFINITY, -INFINITY, -INFINITY,
                          1, NAN,       2, 1000,      0,         -1000};
  softmax(context_, {.src = {x.data()}, .dst = {x.data()}, .dims = {1, 1, 4}, .n = 3});

  EXPECT_NEAR(x[2], 1 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(x[1], 0.0F);
  for (uint64_t i = 3; i < 9; ++i)
    EXPECT_TRUE(std::isnan(x[i])) << i;
  EXPECT_EQ(x[9], 1.0F);
  EXPECT_EQ(x[11], 0.0F);
}

// However far below its maximum a row's score is, no underflow is left in the result.
TEST_P(Softmax, MaskedScoresAreExactlyZeroInBf16) {
  for (float masked : {-89.0F, -104.0F, -150.0F, -250.0F, -1e4F, -3.4e38F, -INFINITY}) {
    std::vector<float> values(40, 0.0F);
    std::fill(values.begin() + 20, values.end(), masked);
    std::vector<uint16_t> x(values.size());
    const Source source{x.data(), ElementType::kBf16, {}};
    const Target target{x.data(), ElementType::kBf16, {}};
    context_.table->store_f32(values.data(), 40, target, 0, false);
    softmax(context_, {.src = source, .dst = target, .dims = {1, 1, 1}, .n = 40});
    context_.table->load_f32(source, 0, 40, values.data());
    EXPECT_NEAR(values[0], 0.05, 0.0002) << masked;
    EXPECT_EQ(values[39], 0.0F) << masked;
  }
}

TENON_EACH_LEVEL(Softmax);

}  // namespace
}  // namespace tenon::onednn::kernels
