// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fixture that runs each test once per CPU level which this machine has, and small means shared
// by the kernel tests: seeded data, ulp distance, a pool of threads that cuts ranges unevenly.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/context.h"
#include "kernels/kernel_table.h"

namespace tenon::onednn::kernels {

class EachLevel : public testing::TestWithParam<Level> {
 protected:
  void SetUp() override {
    if (GetParam() > best_level())
      GTEST_SKIP() << "no " << level_name(GetParam()) << " on this CPU";
    context_ = make_context(GetParam(), {run_uneven, nullptr});
  }
  // One thread, but pieces of 1, 2, 3, ... times the grain, in reverse.
  static void run_uneven(void*, uint64_t n, uint64_t grain, Parallel::Body body, void* arg) {
    uint64_t hi = n;
    for (uint64_t step = grain; hi > 0; step += grain) {
      const uint64_t lo = hi > step ? hi - step : 0;
      body(arg, lo, hi);
      hi = lo;
    }
  }
  Context context_;
};

inline std::string level_of(const testing::TestParamInfo<Level>& test) {
  return level_name(test.param);
}

// Those that are compiled for this processor.
#if defined(__x86_64__)
inline constexpr Level kLevels[] = {Level::kBaseline, Level::kAvx2, Level::kAvx512};
#else
inline constexpr Level kLevels[] = {Level::kBaseline};
#endif
// By its full name: a file that is compiled with others may have levels of its own.
#define TENON_EACH_LEVEL(suite)                                                                 \
  INSTANTIATE_TEST_SUITE_P(Levels, suite, testing::ValuesIn(::tenon::onednn::kernels::kLevels), \
                           level_of)

inline std::vector<float> uniform(uint64_t n, float low, float high, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(n);
  for (float& value : values)
    value = distribution(random);
  return values;
}

// |got - want| in units of the last place of the f32 nearest to want.
inline double ulps(float got, double want) {
  const float nearest = static_cast<float>(want);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e30;
  if (std::isinf(nearest) || std::isinf(got)) return nearest == got ? 0 : 1e30;
  const float magnitude = std::max(std::fabs(nearest), std::numeric_limits<float>::min());
  const double unit = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::fabs(static_cast<double>(got) - want) / unit;
}

// That each y is want(x) within `limit` ulps.
inline void expect_ulps(const std::vector<float>& x,
                        const std::vector<float>& y,
                        double (*want)(double),
                        double limit) {
  double worst = 0;
  float at = 0;
  for (uint64_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], want(static_cast<double>(x[i])));
    if (error > worst) at = x[i];
    worst = std::max(worst, error);
  }
  testing::Test::RecordProperty("worst_ulps", std::to_string(worst));
  EXPECT_LE(worst, limit) << "at " << at;
}

}  // namespace tenon::onednn::kernels
