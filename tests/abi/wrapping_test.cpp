// SPDX-License-Identifier: Apache-2.0
// Integers of every width wrap around. In a constant expression undefined behaviour does not
// compile, so the compiler itself finds what is left to chance.
#include "tenon/wrapping.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace tenon {
namespace {

template <class A>
constexpr bool wraps() {
  constexpr A low = std::numeric_limits<A>::min(), high = std::numeric_limits<A>::max();
  constexpr A all = static_cast<A>(-1);
  return wrapping_add<A>(high, 1) == low && wrapping_sub<A>(low, 1) == high &&
         wrapping_mul<A>(high, 2) == static_cast<A>(-2) && wrapping_mul<A>(all, all) == 1;
}

TEST(Wrapping, IsThatOfTheType) {
  static_assert(wraps<int8_t>() && wraps<int16_t>() && wraps<int32_t>() && wraps<int64_t>());
  static_assert(wraps<uint8_t>() && wraps<uint16_t>() && wraps<uint32_t>() && wraps<uint64_t>());
}

TEST(Wrapping, LeavesFloatingPointNumbersAsTheyAre) {
  EXPECT_EQ(wrapping_add(1e300, 1.0), 1e300);
  EXPECT_EQ(wrapping_sub(0.5F, 1.0F), -0.5F);
  EXPECT_EQ(wrapping_mul(1e300, 1e300), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tenon
