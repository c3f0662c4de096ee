// SPDX-License-Identifier: Apache-2.0
// Local response normalization against an f64 loop.

#include "kernels/lrn.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Lrn : public EachLevel {};

TEST_P(Lrn, AgreesWithF64) {
  struct Case {
    int64_t outer, channels, inner, size;
    float beta, bias;
  };
  constexpr Case kCases[] = {{2, 7, 5, 5, 0.75F, 1.0F},  {1, 96, 100, 5, 0.75F, 2.0F},
                             {1, 3, 33, 4, 0.5F, 1.0F},  {3, 1, 16, 3, 1.2F, 0.5F},
                             {9, 96, 1, 5, 0.75F, 1.0F}, {4, 37, 1, 4, 0.5F, 2.0F},
                             {5, 3, 1, 7, 0.75F, 1.0F},  {2, 4100, 1, 5, 0.75F, 1.0F}};
  for (const Case& c : kCases) {
    const auto count = static_cast<uint64_t>(c.outer * c.channels * c.inner);
    const std::vector<float> x = uniform(count, -3, 3);
    std::vector<float> y(count + 1, 7.0F);
    const float alpha = 0.3F;
    normalize_response(context_, {x.data(), y.data(), c.outer, c.channels, c.inner, c.size, alpha,
                                  c.beta, c.bias});

    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      const int64_t channel = i / c.inner % c.channels;
      double sum = 0;
      for (int64_t k = channel - (c.size - 1) / 2; k <= channel + c.size / 2; ++k) {
        if (k < 0 || k >= c.channels) continue;
        const double v = x[static_cast<uint64_t>(i + (k - channel) * c.inner)];
        sum += v * v;
      }
      const double want = static_cast<double>(x[static_cast<uint64_t>(i)]) *
                          std::pow(c.bias + static_cast<double>(alpha) * sum, -c.beta);
      ASSERT_NEAR(y[static_cast<uint64_t>(i)], want, 2e-6 * std::fabs(want)) << i;
    }
    EXPECT_EQ(y.back(), 7.0F);
  }
}

TENON_EACH_LEVEL(Lrn);

}  // namespace
}  // namespace tenon::onednn::kernels
