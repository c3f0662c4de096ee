// SPDX-License-Identifier: Apache-2.0
// Every bit pattern of the 16-bit types, against the compiler's own float16 and by bfloat16's
// definition; and rounding where it is decided: halfway between neighbours, and just beside that.
#include "tenon/half.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace tenon {
namespace {

float compilers(uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

// The bits are those of `want`; of NaN only that it is one.
void same(float got, float want, uint32_t bits) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << bits;
  } else {
    EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << bits;
  }
}

TEST(Half, ReadsEveryPattern) {
  for (uint32_t bits = 0; bits < 65536; ++bits)
    same(float_of_half(static_cast<uint16_t>(bits)), compilers(static_cast<uint16_t>(bits)), bits);
}

TEST(Half, WritesWhatItReads) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float_of_half(static_cast<uint16_t>(bits));
    same(float_of_half(half_of_float(value)), value, bits);
    if (!std::isnan(value)) {
      EXPECT_EQ(half_of_float(value), bits);
    }
  }
}

TEST(Half, RoundsToTheNearestEven) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {  // the last is the largest: infinity is next
    const float low = float_of_half(static_cast<uint16_t>(bits));
    const float high = bits == 0x7bff ? 65536.0F : float_of_half(static_cast<uint16_t>(bits + 1));
    const float middle = (low + high) / 2;
    for (float value : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, kInf)}) {
      const uint16_t want = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
      ASSERT_EQ(half_of_float(value), want) << value;
      ASSERT_EQ(half_of_float(-value), want | 0x8000) << -value;
    }
  }
  EXPECT_EQ(half_of_float(kInf), 0x7c00);
  EXPECT_EQ(half_of_float(3e38F), 0x7c00);
  EXPECT_EQ(half_of_float(1e-45F), 0);
  EXPECT_TRUE(std::isnan(float_of_half(half_of_float(NAN))));
}

TEST(Bfloat, IsTheUpperHalfOfAFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float_of_bfloat(static_cast<uint16_t>(bits));
    same(value, std::bit_cast<float>(bits << 16), bits);
    if (!std::isnan(value)) {
      EXPECT_EQ(bfloat_of_float(value), bits);
    }
  }
}

TEST(Bfloat, RoundsToTheNearestEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const uint32_t middle = bits << 16 | 0x8000;
    const uint32_t even = bits + (bits & 1);
    ASSERT_EQ(bfloat_of_float(std::bit_cast<float>(middle)), even);
    ASSERT_EQ(bfloat_of_float(std::bit_cast<float>(middle - 1)), bits);
    ASSERT_EQ(bfloat_of_float(std::bit_cast<float>(middle + 1)), bits + 1);
  }
  // A NaN whose payload is only in the lower half stays a NaN.
  EXPECT_TRUE(std::isnan(float_of_bfloat(bfloat_of_float(std::bit_cast<float>(0x7f800001U)))));
}

}  // namespace
}  // namespace tenon
