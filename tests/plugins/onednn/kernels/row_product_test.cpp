// SPDX-License-Identifier: Apache-2.0
// One row times matrices, against f64 loops: both orders of the matrix, odd sizes, stacks.

#include "kernels/row_product.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class RowProduct : public EachLevel {};

struct Case {
  int64_t k, n, a_k;
  bool is_along_sums;  // b_k == 1
};

TEST_P(RowProduct, AgreesWithF64) {
  const Case cases[] = {{1, 1, 1, false},     {7, 3, 2, false},    {8, 16, 1, false},
                        {9, 33, 1, false},    {77, 131, 3, false}, {64, 2500, 1, false},
                        {1000, 70, 1, false}, {1, 5, 1, true},     {3, 1, 1, true},
                        {16, 4, 1, true},     {33, 7, 1, true},    {301, 270, 1, true}};
  for (const Case& c : cases) {
    const int64_t gap = 3, pitch = (c.is_along_sums ? c.k : c.n) + gap;
    const int64_t matrix = pitch * (c.is_along_sums ? c.n : c.k);
    const std::vector<float> a = uniform(static_cast<uint64_t>(2 * c.k * c.a_k), -1, 1);
    const std::vector<float> b = uniform(static_cast<uint64_t>(2 * matrix), -1, 1, 2);
    const int64_t a_starts[] = {0, c.k * c.a_k, 0}, b_starts[] = {matrix, 0, 0};
    RowProductArgs args{{.k = c.k, .n = c.n, .a_k = c.a_k}, a_starts, b_starts};
    args.matrix.b_k = c.is_along_sums ? 1 : pitch;
    args.matrix.b_column = c.is_along_sums ? pitch : 1;
    args.matrix.a = a.data();
    args.matrix.b = b.data();
    std::vector<float> y(static_cast<uint64_t>(3 * c.n) + 1, 7.0F);
    args.matrix.dst = y.data();
    row_product(context_, args);

    for (int64_t i = 0; i < 3 * c.n; ++i) {
      const auto product = static_cast<uint64_t>(i / c.n);
      double want = 0, sum_of_magnitudes = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        const double term = double{a[static_cast<uint64_t>(a_starts[product] + k * c.a_k)]} *
                            double{b[static_cast<uint64_t>(b_starts[product] + k * args.matrix.b_k +
                                                           i % c.n * args.matrix.b_column)]};
        want += term;
        sum_of_magnitudes += std::fabs(term);
      }
      const double bound = (static_cast<double>(c.k) / 8 + 9) * std::ldexp(1.0, -24);
      ASSERT_NEAR(y[static_cast<uint64_t>(i)], want, bound * sum_of_magnitudes)
          << c.k << " x " << c.n << " at " << i;
    }
    EXPECT_EQ(y.back(), 7.0F);
  }
}

TEST_P(RowProduct, KeepsWhatIsNotFiniteInItsColumn) {
  constexpr int64_t kSize = 20, kStart[] = {0};
  std::vector<float> a(kSize, 1.0F), b(kSize * kSize, 1.0F), y(kSize);
  b[3 * kSize + 5] = INFINITY;
  b[19 * kSize + 18] = NAN;
  for (const bool is_along_sums : {false, true}) {
    RowProductArgs args{{.k = kSize, .n = kSize}, kStart, kStart};
    args.matrix.a = a.data();
    args.matrix.b = b.data();
    args.matrix.dst = y.data();
    args.matrix.b_k = is_along_sums ? 1 : kSize;
    args.matrix.b_column = is_along_sums ? kSize : 1;
    row_product(context_, args);

    const uint64_t infinite = is_along_sums ? 3 : 5, not_a_number = is_along_sums ? 19 : 18;
    for (uint64_t i = 0; i < y.size(); ++i) {
      if (i == infinite)
        EXPECT_EQ(y[i], INFINITY);
      else if (i == not_a_number)
        EXPECT_TRUE(std::isnan(y[i]));
      else
        EXPECT_EQ(y[i], 20.0F) << i;
    }
  }
}

TENON_EACH_LEVEL(RowProduct);

}  // namespace
}  // namespace tenon::onednn::kernels
