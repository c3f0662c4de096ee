// SPDX-License-Identifier: Apache-2.0
// Numbers become integers as ONNX Runtime 1.31 and NumPy make them on x86. In a constant expression
// undefined behaviour does not compile.
#include "tenon/whole.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace tenon {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
constexpr T as(double x) {
  return static_cast<T>(integer_of(x, std::is_signed_v<T>, 8 * sizeof(T)));
}

TEST(Whole, CutsTowardsZero) {
  static_assert(as<int32_t>(-3.99) == -3 && as<int32_t>(2147483647.9) == INT32_MAX);
  static_assert(as<int32_t>(-2147483648.9) == INT32_MIN && as<uint64_t>(0.9) == 0);
  static_assert(as<uint32_t>(4294967295.9) == UINT32_MAX && as<uint64_t>(0x1p63) == 1ULL << 63);
  static_assert(as<uint64_t>(18446744073709549568.0) == 18446744073709549568ULL);
}

TEST(Whole, GivesTheLowestNumberForWhatASignedTypeDoesNotHold) {
  for (const double x : {kNan, HUGE_VAL, -HUGE_VAL, 0x1p63, 0x1p64, -1e20}) {
    EXPECT_EQ(as<int64_t>(x), INT64_MIN) << x;
    EXPECT_EQ(as<int32_t>(x), INT32_MIN) << x;
  }
  static_assert(as<int32_t>(0x1p31) == INT32_MIN && as<int32_t>(-2147483649.0) == INT32_MIN);
}

TEST(Whole, KeepsTheLowBitsForANarrowType) {
  static_assert(as<uint8_t>(300) == 44 && as<int8_t>(-129) == 127 && as<uint8_t>(-1) == 255);
  static_assert(as<int16_t>(32768) == INT16_MIN && as<uint16_t>(1e10) == 0);
  for (const double x : {kNan, HUGE_VAL, -HUGE_VAL, 0x1p31, 1e10, 0x1p64}) {
    EXPECT_EQ(as<uint8_t>(x), 0) << x;
    EXPECT_EQ(as<int16_t>(x), 0) << x;
  }
}

TEST(Whole, WrapsNegativeNumbersAroundInATypeWithoutSign) {
  static_assert(as<uint32_t>(-1) == UINT32_MAX && as<uint64_t>(-129) == UINT64_MAX - 128);
  for (const double x : {HUGE_VAL, 0x1p64, 1e300}) {
    EXPECT_EQ(as<uint32_t>(x), 0) << x;
    EXPECT_EQ(as<uint64_t>(x), 0) << x;
  }
  for (const double x : {kNan, -HUGE_VAL, -1e300}) {
    EXPECT_EQ(as<uint32_t>(x), 1U << 31) << x;
    EXPECT_EQ(as<uint64_t>(x), 1ULL << 63) << x;
  }
}

}  // namespace
}  // namespace tenon
