// SPDX-License-Identifier: Apache-2.0
// Every bit pattern of the 8 and 4-bit types: numbers of the specifications' tables, what is
// written is what was read, and rounding against the nearest of all numbers, found by looking at
// each.
#include "tenon/narrow.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace tenon {
namespace {

const Minifloat& format(uint32_t code, uint32_t bits = 8) {
  return *minifloat(TN_DTYPE(code, bits));
}
int patterns(const Minifloat& f) {
  return 1 << TN_DTYPE_BITS(f.dtype);
}

TEST(Minifloat, HasTheNumbersOfTheSpecification) {
  const Minifloat& e4m3 = format(kDLFloat8_e4m3fn);  // OCP, table 1
  EXPECT_EQ(number_of(e4m3, 0x7e), 448);
  EXPECT_TRUE(std::isnan(number_of(e4m3, 0x7f)));
  EXPECT_EQ(number_of(e4m3, 0x08), std::ldexp(1.0, -6));
  EXPECT_EQ(number_of(e4m3, 0x01), std::ldexp(1.0, -9));
  const Minifloat& e5m2 = format(kDLFloat8_e5m2);
  EXPECT_EQ(number_of(e5m2, 0x7b), 57344);
  EXPECT_EQ(number_of(e5m2, 0x7c), HUGE_VAL);
  EXPECT_TRUE(std::isnan(number_of(e5m2, 0x7d)));
  EXPECT_EQ(number_of(e5m2, 0x01), std::ldexp(1.0, -16));
  EXPECT_EQ(number_of(format(kDLFloat8_e4m3fnuz), 0x7f), 240);
  EXPECT_TRUE(std::isnan(number_of(format(kDLFloat8_e4m3fnuz), 0x80)));
  EXPECT_EQ(number_of(format(kDLFloat8_e5m2fnuz), 0x7f), 57344);
  EXPECT_EQ(number_of(format(kDLFloat8_e8m0fnu), 127), 1);
  EXPECT_EQ(number_of(format(kDLFloat4_e2m1fn, 4), 0x7), 6);
  EXPECT_EQ(number_of(format(kDLFloat4_e2m1fn, 4), 0x9), -0.5);
  EXPECT_EQ(minifloat(TN_F32), nullptr);
}

TEST(Minifloat, WritesWhatItReads) {
  for (const Minifloat& f : kMinifloats)
    for (int bits = 0; bits < patterns(f); ++bits) {
      const double number = number_of(f, static_cast<uint8_t>(bits));
      if (std::isnan(number)) {
        EXPECT_TRUE(std::isnan(number_of(f, bits_of(f, number)))) << f.dtype << " " << bits;
      } else {
        EXPECT_EQ(bits_of(f, number, {.saturate = false}), bits) << f.dtype;
      }
    }
}

// The finite number nearest to x; of two, the one with an even pattern.
uint8_t nearest(const Minifloat& f, double x) {
  int best = -1;
  double least = HUGE_VAL;
  for (int bits = 0; bits < patterns(f); ++bits) {
    const double number = number_of(f, static_cast<uint8_t>(bits));
    if (!std::isfinite(number) || std::signbit(number) != std::signbit(x)) continue;
    const double off = std::fabs(number - x);
    if (off < least || (off == least && bits % 2 == 0)) best = bits, least = off;
  }
  return static_cast<uint8_t>(best);
}

TEST(Minifloat, RoundsToTheNearestAndTiesToEven) {
  for (const Minifloat& f : kMinifloats) {
    if (f.mantissa_bits == 0) continue;  // powers: ties go up
    std::vector<double> all;
    for (int bits = 0; bits <= f.top(); ++bits)
      all.push_back(f.magnitude(static_cast<uint8_t>(bits)));
    for (size_t i = 0; i + 1 < all.size(); ++i)
      for (double part : {0.25, 0.5, 0.75, 0.501})
        for (double sign : {1.0, -1.0}) {
          const double x = sign * (all[i] + part * (all[i + 1] - all[i]));
          const uint8_t want = nearest(f, x), got = bits_of(f, x);
          if (f.zero_nan && number_of(f, got) == 0) continue;  // has no -0
          EXPECT_EQ(got, want) << f.dtype << " " << x;
        }
  }
}

TEST(Minifloat, SaturatesOrOverflows) {
  const Minifloat &e4m3 = format(kDLFloat8_e4m3fn), &e5m2 = format(kDLFloat8_e5m2);
  EXPECT_EQ(number_of(e4m3, bits_of(e4m3, -1e9)), -448);
  EXPECT_EQ(number_of(e5m2, bits_of(e5m2, HUGE_VAL)), 57344);
  EXPECT_TRUE(std::isnan(number_of(e4m3, bits_of(e4m3, 1e9, {.saturate = false}))));
  EXPECT_EQ(number_of(e5m2, bits_of(e5m2, -1e9, {.saturate = false})), -HUGE_VAL);
  EXPECT_EQ(number_of(format(kDLFloat4_e2m1fn, 4),
                      bits_of(format(kDLFloat4_e2m1fn, 4), 99, {.saturate = false})),
            6);
}

TEST(Packed, LeavesNeighboursAlone) {
  std::vector<uint8_t> bytes(4, 0xff);
  put_packed(bytes.data(), 2, 5, 0);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0xff, 0xf3, 0xff, 0xff}));
  put_packed(bytes.data(), 4, 7, 9);
  EXPECT_EQ(bytes[3], 0x9f);
  EXPECT_EQ(packed_at(bytes.data(), 4, 7), 9);
  EXPECT_EQ(packed_integer_at(bytes.data(), TN_I4, 7), -7);
  EXPECT_EQ(packed_integer_at(bytes.data(), TN_U4, 7), 9);
  EXPECT_EQ(packed_integer_at(bytes.data(), TN_DTYPE(kDLInt, 2), 4), -1);
}

}  // namespace
}  // namespace tenon
