// SPDX-License-Identifier: Apache-2.0
// Rows to f32 and back: every bit pattern of the 16-bit types, saturation, tails.

#include "kernels/convert.h"

#include <cstring>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Convert : public EachLevel {
 protected:
  template <class T>
  std::vector<T> store(const std::vector<float>& values, ElementType type, Quant quant = {}) {
    std::vector<T> out(values.size() + 1, T{77});
    context_.table->store_f32(values.data(), static_cast<int64_t>(values.size()),
                              {out.data(), type, quant}, 0, false);
    EXPECT_EQ(out.back(), T{77}) << "wrote past the end";
    out.pop_back();
    return out;
  }
  template <class T>
  std::vector<float> load(const std::vector<T>& values, ElementType type, Quant quant = {}) {
    std::vector<float> out(values.size());
    context_.table->load_f32({values.data(), type, quant}, 0, static_cast<int64_t>(values.size()),
                             out.data());
    return out;
  }
};

float half_to_float(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const float mantissa = static_cast<float>(h & 1023);
  const float sign = (h & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                       : sign * std::ldexp(mantissa + 1024, exponent - 25);
}

std::vector<uint16_t> all_patterns() {
  std::vector<uint16_t> all(65536);
  for (uint32_t i = 0; i < 65536; ++i)
    all[i] = static_cast<uint16_t>(i);
  return all;
}

// Rows of every short length, forwards, backwards, repeated and with gaps; nothing behind them.
TEST_P(Convert, LoadsGrids) {
  std::vector<float> values(2000);
  for (uint64_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 251);
  std::vector<uint8_t> bytes(values.begin(), values.end());
  for (int64_t stride : {1, 0, -1, 2, -3}) {
    for (int64_t row_stride : {0, 1, 40, -40}) {
      for (int64_t length = 1; length <= 40; ++length) {
        const RowGrid grid{1000, 7, row_stride, length, stride};
        std::vector<float> got(static_cast<uint64_t>(7 * length) + 1, -5.0F), of_bytes = got;
        context_.table->load_grid({values.data()}, grid, got.data());
        context_.table->load_grid({bytes.data(), ElementType::kU8, {0.5F, 3}}, grid,
                                  of_bytes.data());
        for (int64_t i = 0; i < 7 * length; ++i) {
          const auto k = static_cast<uint64_t>(i);
          const float want =
              values[static_cast<uint64_t>(1000 + i / length * row_stride + i % length * stride)];
          ASSERT_EQ(got[k], want) << stride << ", rows " << row_stride << ", " << length;
          ASSERT_EQ(of_bytes[k], (want - 3) * 0.5F);
        }
        EXPECT_EQ(got.back(), -5.0F);
        EXPECT_EQ(of_bytes.back(), -5.0F);
      }
    }
  }
}

TEST_P(Convert, EveryHalfRoundTrips) {
  const std::vector<uint16_t> all = all_patterns();
  const std::vector<float> values = load(all, ElementType::kF16);
  const std::vector<uint16_t> back = store<uint16_t>(values, ElementType::kF16);

  for (uint32_t i = 0; i < 65536; ++i) {
    const float want = half_to_float(all[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(values[i]) && (back[i] & 0x7fff) > 0x7c00) << i;
    } else {
      ASSERT_EQ(values[i], want) << i;
      ASSERT_EQ(back[i], all[i]);
    }
  }
}

TEST_P(Convert, HalvesRoundToEvenAtAllMagnitudes) {
  // The midpoint between each two neighbouring halves, and one f32 to either side.
  std::vector<float> values;
  std::vector<uint16_t> want;
  for (uint16_t h = 0; h < 0x7bff; ++h) {
    const float middle = (half_to_float(h) + half_to_float(static_cast<uint16_t>(h + 1))) / 2;
    values.insert(values.end(),
                  {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)});
    const uint16_t even = static_cast<uint16_t>(h + (h & 1));
    want.insert(want.end(), {even, h, static_cast<uint16_t>(h + 1)});
  }
  const std::vector<uint16_t> got = store<uint16_t>(values, ElementType::kF16);

  for (uint64_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(got[i], want[i]) << values[i];
  EXPECT_EQ(store<uint16_t>({65519.0F, 65520.0F, -1e9F}, ElementType::kF16),
            (std::vector<uint16_t>{0x7bff, 0x7c00, 0xfc00}));
}

TEST_P(Convert, Bf16RoundsToEvenAndKeepsDenormalsAndNan) {
  auto from_bits = [](uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  };
  const std::vector<float> values = {from_bits(0x3f808000), from_bits(0x3f818000),
                                     from_bits(0x3f808001), from_bits(0x00018000),
                                     from_bits(0x7f7fffff), from_bits(0x7f800001)};

  EXPECT_EQ(store<uint16_t>(values, ElementType::kBf16),
            (std::vector<uint16_t>{0x3f80, 0x3f82, 0x3f81, 0x0002, 0x7f80, 0x7fc0}));
}

TEST_P(Convert, QuantizingRoundsHalfToEvenAndSaturates) {
  const std::vector<float> values = {0.25F,    0.75F,     1.25F, -0.25F, 1e30F, -1e30F, 63.5F,
                                     INFINITY, -INFINITY, 0.0F,  1.0F,   2.0F,  3.0F,   4.0F,
                                     5.0F,     6.0F,      7.0F,  8.0F,   9.0F};
  const Quant quant{0.5F, 3};
  const std::vector<uint8_t> u8 = store<uint8_t>(values, ElementType::kU8, quant);
  const std::vector<int8_t> s8 = store<int8_t>(values, ElementType::kS8, quant);

  for (uint64_t i = 0; i < values.size(); ++i) {
    const double level = std::nearbyint(static_cast<double>(values[i]) / 0.5) + 3;
    EXPECT_EQ(u8[i], std::clamp(level, 0.0, 255.0)) << values[i];
    EXPECT_EQ(s8[i], std::clamp(level, -128.0, 127.0)) << values[i];
  }
}

TEST_P(Convert, DequantizingIsExact) {
  std::vector<uint8_t> all(256);
  for (uint32_t i = 0; i < 256; ++i)
    all[i] = static_cast<uint8_t>(i);
  const std::vector<float> got = load(all, ElementType::kU8, {0.037F, 131});

  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(got[static_cast<uint64_t>(i)], static_cast<float>(i - 131) * 0.037F);
  }
}

TEST_P(Convert, PlainIntegersTruncateAndHaveTheirLowestNumberForWhatTheyDoNotHold) {
  const std::vector<float> values = {1.9F,   -1.9F, 3e9F,   -3e9F,      1e19F,
                                     -1e19F, NAN,   300.0F, 16777216.0F};

  EXPECT_EQ(store<int32_t>(values, ElementType::kI32),
            (std::vector<int32_t>{1, -1, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, 300,
                                  16777216}));
  EXPECT_EQ(store<int64_t>(values, ElementType::kI64),
            (std::vector<int64_t>{1, -1, 3000000000, -3000000000, INT64_MIN, INT64_MIN, INT64_MIN,
                                  300, 16777216}));
  EXPECT_EQ(store<uint8_t>(values, ElementType::kU8),
            (std::vector<uint8_t>{1, 0, 255, 0, 255, 0, 0, 255, 255}));
  EXPECT_EQ(store<uint8_t>({0.0F, -0.0F, 0.5F, NAN, -3.0F}, ElementType::kBool),
            (std::vector<uint8_t>{0, 0, 1, 1, 1}));
}

TEST_P(Convert, StreamingWritesTheSameAtAnyAddress) {
  const std::vector<float> values = uniform(203, -1, 1);
  for (int64_t offset = 0; offset < 20; ++offset) {
    std::vector<float> out(230, 7.0F);
    context_.table->store_f32(values.data(), 203, {out.data(), ElementType::kF32, {}}, offset,
                              true);

    EXPECT_TRUE(std::equal(values.begin(), values.end(), out.begin() + offset));
    EXPECT_EQ(out[static_cast<uint64_t>(offset) + 203], 7.0F);
  }
}

TENON_EACH_LEVEL(Convert);

}  // namespace
}  // namespace tenon::onednn::kernels
