// SPDX-License-Identifier: Apache-2.0
// Products of f32 numbers in panels against sums in f64.

#include "kernels/float_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

// A product with memory of its own; `b` is [n, k], so that columns are what lies dense.
struct Problem {
  FloatProductArgs args;
  std::vector<float> a, b, packed, scales, bias;

  Problem(int64_t m, int64_t n, int64_t k, int64_t gap = 0) {
    args.m = m;
    args.n = n;
    args.k = k;
    args.a_stride = k + gap;
    args.dst_stride = n + gap;
    a = uniform(static_cast<uint64_t>(m * (k + gap)) + 1, -1, 1, 1);
    b = uniform(static_cast<uint64_t>(n * k) + 1, -1, 1, 2);
    const auto padded = static_cast<uint64_t>(float_columns(n)) + 1;
    scales = uniform(padded, 0.5, 1.5, 3);
    bias = uniform(padded, -1, 1, 4);
  }

  template <class T>
  std::vector<T> run(const Context& context, ElementType type) {
    const int64_t panel = float_panel(context);
    const FloatWeights weights = {b.data(), args.k, args.n, 1, args.k};
    packed.assign(static_cast<uint64_t>(packed_float_bytes(weights, panel)) / 4 + 1, 77.0F);
    pack_floats(weights, panel, packed.data());
    EXPECT_EQ(packed.back(), 77.0F);
    args.a = a.data();
    args.b = packed.data();
    args.scales = scales.data();
    args.bias = bias.data();
    std::vector<T> dst(static_cast<size_t>(args.m * args.dst_stride) + 1, T{77});
    args.dst.data = dst.data();
    args.dst.type = type;
    float_product(context, args);
    for (int64_t row = 0; row < args.m; ++row)  // nothing is written into the gaps
      for (int64_t column = args.n; column < args.dst_stride; ++column)
        EXPECT_EQ(dst[static_cast<size_t>(row * args.dst_stride + column)], T{77});
    EXPECT_EQ(dst.back(), T{77});
    return dst;
  }

  double want(int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t i = 0; i < args.k; ++i)
      sum += double{a[static_cast<size_t>(row * args.a_stride + i)]} *
             double{b[static_cast<size_t>(column * args.k + i)]};
    const auto at = static_cast<size_t>(column);
    return sum * double{scales[at]} + double{bias[at]};
  }
  size_t at(int64_t row, int64_t column) const {
    return static_cast<size_t>(row * args.dst_stride + column);
  }
  // The header's, with the rounding of scale and bias.
  double bound() const {
    return std::ldexp(static_cast<double>(args.k) + 4, -24) * 2 * 1.5 *
           static_cast<double>(args.k + 1);
  }
};

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},     {3, 5, 0},     {0, 4, 4},      {4, 0, 4},    {1, 40, 7},
                           {7, 16, 64},   {12, 32, 33},  {13, 33, 31},   {23, 48, 8},  {25, 96, 5},
                           {100, 70, 96}, {211, 17, 40}, {437, 384, 12}, {5, 17, 3000}};

class FloatProduct : public EachLevel {};

TEST_P(FloatProduct, SumsAllSizes) {
  for (const Size& size : kSizes) {
    for (int64_t gap : {0, 3}) {
      Problem problem(size.m, size.n, size.k, gap);
      const auto got = problem.run<float>(context_, ElementType::kF32);
      for (int64_t row = 0; row < size.m; ++row)
        for (int64_t column = 0; column < size.n; ++column)
          ASSERT_NEAR(got[problem.at(row, column)], problem.want(row, column), problem.bound())
              << "at " << row << ", " << column << " of " << size.m << " x " << size.n << ", k "
              << size.k;
    }
  }
}

// So that a length compiled later, or other companions in a batch, change no bit.
TEST_P(FloatProduct, RowsDoNotDependOnEachOther) {
  Problem all(61, 50, 96);
  const auto whole = all.run<float>(context_, ElementType::kF32);
  for (int64_t m : {1, 5, 12, 13, 23, 24, 37}) {
    Problem some(m, 50, 96);
    std::copy_n(all.a.begin(), some.a.size(), some.a.begin());
    const auto got = some.run<float>(context_, ElementType::kF32);
    for (int64_t i = 0; i < m * 50; ++i)
      ASSERT_EQ(got[static_cast<size_t>(i)], whole[static_cast<size_t>(i)]) << i << " of " << m;
  }
}

TEST_P(FloatProduct, BoundsAndRounds) {
  for (const Size& size : kSizes) {
    if (size.k > 100) continue;
    Problem problem(size.m, size.n, size.k);
    problem.args.low = -3;
    problem.args.high = 4;
    problem.args.dst.quant.zero_point = 3;
    const auto real = problem.run<float>(context_, ElementType::kF32);
    const auto quantized = problem.run<int8_t>(context_, ElementType::kS8);
    const auto half = problem.run<uint16_t>(context_, ElementType::kBf16);
    for (int64_t row = 0; row < size.m; ++row) {
      for (int64_t column = 0; column < size.n; ++column) {
        const double want = std::clamp(problem.want(row, column), -3.0, 4.0);
        const size_t at = problem.at(row, column);
        ASSERT_NEAR(real[at], want, 1e-4);
        ASSERT_NEAR(quantized[at], want + 3, 0.5002);
        const uint32_t wide = uint32_t{half[at]} << 16;
        float number = 0;
        std::memcpy(&number, &wide, 4);
        ASSERT_NEAR(number, want, 1e-4 + std::abs(want) / 256);
      }
    }
  }
}

// A residual and an activation; the operations themselves are int8_product_test's.
TEST_P(FloatProduct, DoesWhatFollows) {
  constexpr int64_t kM = 26, kN = 45;
  Problem problem(kM, kN, 31);
  const std::vector<float> other = uniform(kM * kN, -1, 1, 8);
  const EpilogueOp ops[] = {{.kind = EpilogueOp::Kind::kAdd,
                             .alpha = 2,
                             .other = {other.data()},
                             .row_stride = kN,
                             .column_stride = 1},
                            {.kind = EpilogueOp::Kind::kTanh}};
  problem.args.ops = ops;
  problem.args.n_ops = 2;
  const auto got = problem.run<float>(context_, ElementType::kF32);
  for (int64_t row = 0; row < kM; ++row)
    for (int64_t column = 0; column < kN; ++column)
      ASSERT_NEAR(got[problem.at(row, column)],
                  std::tanh(problem.want(row, column) +
                            2 * double{other[static_cast<size_t>(row * kN + column)]}),
                  1e-5);
}

// The bound of level/erf_gelu.h, or that of erf, with the rounding of f32.
TEST_P(FloatProduct, GeluIsWithinItsBound) {
  constexpr int64_t kColumns = 38400;
  Problem problem(1, kColumns, 1);
  std::fill(problem.scales.begin(), problem.scales.end(), 0.0F);
  for (int64_t i = 0; i < kColumns; ++i)
    problem.bias[static_cast<size_t>(i)] = static_cast<float>(i) / 1600 - 12;
  const EpilogueOp gelu{.kind = EpilogueOp::Kind::kGeluErf};
  problem.args.ops = &gelu;
  problem.args.n_ops = 1;
  const auto got = problem.run<float>(context_, ElementType::kF32);
  for (size_t i = 0; i < got.size() - 1; ++i) {
    const double y = problem.bias[i];
    ASSERT_NEAR(got[i], y * 0.5 * std::erfc(-y * std::sqrt(0.5)),
                1.8e-7 * std::max(1.0, std::fabs(y)))
        << y;
  }
}

TEST_P(FloatProduct, KeepsInfinitiesAndNaN) {
  Problem problem(14, 40, 8);
  problem.a[0] = std::numeric_limits<float>::quiet_NaN();
  problem.a[8] = std::numeric_limits<float>::infinity();
  const auto got = problem.run<float>(context_, ElementType::kF32);
  for (int64_t column = 0; column < 40; ++column) {
    ASSERT_TRUE(std::isnan(got[problem.at(0, column)]));
    ASSERT_TRUE(std::isinf(got[problem.at(1, column)]));
    ASSERT_TRUE(std::isfinite(got[problem.at(2, column)]));
  }
}

TENON_EACH_LEVEL(FloatProduct);

}  // namespace
}  // namespace tenon::onednn::kernels
