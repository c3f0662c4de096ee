// SPDX-License-Identifier: Apache-2.0
// Reductions over last and middle axes against f64 loops.

#include "kernels/reduce.h"

#include <bit>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Reduce : public EachLevel {};

double reference(Reduction kind, const std::vector<double>& x) {
  double total = kind == Reduction::kMax       ? -INFINITY
                 : kind == Reduction::kMin     ? INFINITY
                 : kind == Reduction::kProduct ? 1
                                               : 0;
  for (double v : x) {
    switch (kind) {
      case Reduction::kProduct:
        total *= v;
        break;
      case Reduction::kMax:
        total = std::max(total, v);
        break;
      case Reduction::kMin:
        total = std::min(total, v);
        break;
      case Reduction::kL1:
        total += std::fabs(v);
        break;
      case Reduction::kSumSquare:
      case Reduction::kL2:
        total += v * v;
        break;
      default:
        total += v;
    }
  }
  if (kind == Reduction::kMean) return total / static_cast<double>(x.size());
  return kind == Reduction::kL2 ? std::sqrt(total) : total;
}

TEST_P(Reduce, AgreesWithF64) {
  constexpr int64_t kShapes[][3] = {{5, 1, 1},    {700, 2, 1},   {3, 100, 1},  {2, 5000, 1},
                                    {2, 49, 20},  {3, 128, 384}, {2, 3, 1025}, {1, 1000, 17},
                                    {1, 4099, 3}, {2, 301, 4},   {3, 9, 5},    {1, 40, 150}};
  for (const auto& [outer, k, inner] : kShapes) {
    const std::vector<float> x = uniform(static_cast<uint64_t>(outer * k * inner), -1, 3);
    for (int kind = 0; kind < static_cast<int>(Reduction::kCount); ++kind) {
      std::vector<float> y(static_cast<uint64_t>(outer * inner) + 1, 7.0F);
      reduce(context_, {static_cast<Reduction>(kind), {x.data()}, {y.data()}, outer, k, inner});

      for (int64_t i = 0; i < outer * inner; ++i) {
        std::vector<double> line;
        for (int64_t j = 0; j < k; ++j) {
          line.push_back(x[static_cast<uint64_t>((i / inner * k + j) * inner + i % inner)]);
        }
        const auto reduction = static_cast<Reduction>(kind);
        const double want = reference(reduction, line);
        // 64 products of f32 between those of f64.
        const double relative = reduction == Reduction::kProduct ? 64 * 6e-8 : 2e-6;
        ASSERT_NEAR(y[static_cast<uint64_t>(i)], want, relative * std::fabs(want) + 1e-6) << kind;
      }
      EXPECT_EQ(y.back(), 7.0F);
    }
  }
}

// Neither the large nor the small ones are multiplied alone.
TEST_P(Reduce, MultipliesInOrder) {
  for (int64_t inner : {1, 20}) {
    std::vector<float> x(static_cast<uint64_t>(1000 * inner));
    for (uint64_t i = 0; i < x.size(); ++i)
      x[i] = i / static_cast<uint64_t>(inner) % 2 == 0 ? 1024.0F : 0x1p-10F;
    std::vector<float> y(static_cast<uint64_t>(inner));
    reduce(context_, {Reduction::kProduct, {x.data()}, {y.data()}, 1, 1000, inner});
    EXPECT_EQ(y, std::vector<float>(y.size(), 1.0F)) << inner;
  }
}

TEST_P(Reduce, ReadsBf16AsItIs) {
  constexpr int64_t kShapes[][3] = {{3, 5000, 1}, {4, 100, 1}, {2, 70, 1025}, {1, 3, 17}};
  for (const auto& [outer, k, inner] : kShapes) {
    std::vector<float> x = uniform(static_cast<uint64_t>(outer * k * inner), -1, 3);
    std::vector<uint16_t> halves;
    for (float& v : x) {
      uint32_t bits = std::bit_cast<uint32_t>(v) & 0xffff0000U;
      v = std::bit_cast<float>(bits);
      halves.push_back(static_cast<uint16_t>(bits >> 16));
    }
    for (int kind = 0; kind < static_cast<int>(Reduction::kCount); ++kind) {
      std::vector<float> y(static_cast<uint64_t>(outer * inner)), want = y;
      const ReduceArgs args{
          static_cast<Reduction>(kind), {x.data()}, {want.data()}, outer, k, inner};
      reduce(context_, args);
      ReduceArgs same = args;
      same.src = {halves.data(), ElementType::kBf16};
      same.dst = {y.data()};
      reduce(context_, same);
      EXPECT_EQ(y, want) << kind;
    }
  }
}

// A row's total does not depend on the rows beside it.
TEST_P(Reduce, TotalsOfShortRowsStandAlone) {
  for (int64_t k : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 127, 128, 129}) {
    const int64_t outer = 37;
    std::vector<float> x = uniform(static_cast<uint64_t>(outer * k), -3, 1);
    x[static_cast<uint64_t>(5 * k + k - 1)] = NAN;
    x[static_cast<uint64_t>(7 * k)] = INFINITY;
    for (int kind = 0; kind < static_cast<int>(Reduction::kCount); ++kind) {
      std::vector<float> y(static_cast<uint64_t>(outer) + 1, 7.0F);
      reduce(context_, {static_cast<Reduction>(kind), {x.data()}, {y.data()}, outer, k, 1});
      for (int64_t r = 0; r < outer; ++r) {
        std::vector<float> rows(static_cast<uint64_t>(16 * k), 5.0F);
        std::copy_n(x.begin() + r * k, k, rows.begin() + 11 * k);
        std::vector<float> among(16);
        reduce(context_, {static_cast<Reduction>(kind), {rows.data()}, {among.data()}, 16, k, 1});
        const float got = y[static_cast<uint64_t>(r)];
        EXPECT_EQ(std::isnan(got), r == 5) << kind << " of " << k;
        if (r == 5) continue;
        EXPECT_EQ(got, among[11]) << kind << " of " << k << ", row " << r;
      }
      EXPECT_EQ(y.back(), 7.0F);
    }
  }
}

// [2, 49, 20] u8 channels-last
TEST_P(Reduce, PoolsQuantizedChannels) {
  std::vector<uint8_t> x(2 * 49 * 20);
  for (uint64_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<uint8_t>(i * 37 % 251);
  std::vector<uint8_t> y(40);
  reduce(context_, {Reduction::kMean,
                    {x.data(), ElementType::kU8, {0.1F, 10}},
                    {y.data(), ElementType::kU8, {0.05F, 0}},
                    2,
                    49,
                    20});

  for (uint64_t i = 0; i < 40; ++i) {
    double sum = 0;
    for (uint64_t j = 0; j < 49; ++j)
      sum += (x[(i / 20 * 49 + j) * 20 + i % 20] - 10) * 0.1;
    EXPECT_NEAR(y[i], std::min(255.0, sum / 49 / 0.05), 0.501);
  }
}

template <class T>
void expect_exact_sums(const Context& context, ElementType type, int64_t k, int64_t inner) {
  std::mt19937 random(5);
  std::vector<T> x(static_cast<uint64_t>(2 * k * inner));
  for (T& quantized : x)
    quantized = random() % 2 == 0 ? std::numeric_limits<T>::max() : static_cast<T>(random());
  std::vector<float> y(static_cast<uint64_t>(2 * inner) + 1, 7.0F);
  reduce(context, {Reduction::kSum, {x.data(), type, {0.5F, 3}}, {y.data()}, 2, k, inner});

  for (int64_t i = 0; i < 2 * inner; ++i) {
    int64_t sum = 0;
    for (int64_t j = 0; j < k; ++j)
      sum += x[static_cast<uint64_t>((i / inner * k + j) * inner + i % inner)] - 3;
    ASSERT_EQ(y[static_cast<uint64_t>(i)], static_cast<float>(sum) * 0.5F) << i << " of " << inner;
  }
  EXPECT_EQ(y.back(), 7.0F);
}

TEST_P(Reduce, SumsQuantizedValuesExactly) {
  for (int64_t inner : {2, 3, 12, 17, 24, 31, 32, 33, 63, 96, 512, 513, 700}) {
    expect_exact_sums<uint8_t>(context_, ElementType::kU8, 300, inner);
    expect_exact_sums<int8_t>(context_, ElementType::kS8, 129, inner);
  }
}

TEST_P(Reduce, SpreadsNanAndAcceptsNothing) {
  std::vector<float> x(100, 1.0F);
  x[70] = NAN;
  float y = 0;
  for (Reduction kind : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    reduce(context_, {kind, {x.data()}, {&y}, 1, 100, 1});
    EXPECT_TRUE(std::isnan(y));
  }
  reduce(context_, {Reduction::kSum, {nullptr}, {&y}, 1, 0, 1});
  EXPECT_EQ(y, 0.0F);
  reduce(context_, {Reduction::kMax, {nullptr}, {&y}, 1, 0, 1});
  EXPECT_EQ(y, -INFINITY);
}

TENON_EACH_LEVEL(Reduce);

}  // namespace
}  // namespace tenon::onednn::kernels
