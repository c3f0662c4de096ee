// SPDX-License-Identifier: Apache-2.0
// Conversions of narrow types against tenon/narrow.hpp number by number, over lengths that end
// within a byte.
#include "kernels/narrow.h"

#include <cmath>
#include <vector>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class Narrow : public EachLevel {};

struct Kind {
  ElementType type;
  uint32_t dtype;
};
constexpr Kind kKinds[] = {{ElementType::kU4, TN_U4},
                           {ElementType::kS4, TN_I4},
                           {ElementType::kU2, TN_DTYPE(kDLUInt, 2)},
                           {ElementType::kS2, TN_DTYPE(kDLInt, 2)},
                           {ElementType::kF4E2M1, TN_DTYPE(kDLFloat4_e2m1fn, 4)},
                           {ElementType::kF8E4M3, TN_DTYPE(kDLFloat8_e4m3fn, 8)},
                           {ElementType::kF8E4M3Fnuz, TN_DTYPE(kDLFloat8_e4m3fnuz, 8)},
                           {ElementType::kF8E5M2, TN_DTYPE(kDLFloat8_e5m2, 8)},
                           {ElementType::kF8E5M2Fnuz, TN_DTYPE(kDLFloat8_e5m2fnuz, 8)},
                           {ElementType::kF8E8M0, TN_DTYPE(kDLFloat8_e8m0fnu, 8)}};

double number_at(const Kind& kind, const std::vector<uint8_t>& bytes, int64_t i) {
  const Minifloat* format = minifloat(kind.dtype);
  return format ? number_of(*format, packed_at(bytes.data(), TN_DTYPE_BITS(kind.dtype), i))
                : static_cast<double>(packed_integer_at(bytes.data(), kind.dtype, i));
}

TEST_P(Narrow, AllPatternsBecomeTheirNumbersAndThemselvesAgain) {
  for (const Kind& kind : kKinds) {
    const int64_t n = (int64_t{1} << TN_DTYPE_BITS(kind.dtype)) - 1;  // ends within a byte
    const auto bytes = static_cast<size_t>(bytes_for(kind.type, n));
    std::vector<uint8_t> source(bytes + 1, 0xa5), back(bytes + 1, 0xa5);
    for (int64_t i = 0; i < n; ++i)
      put_packed(source.data(), TN_DTYPE_BITS(kind.dtype), i, static_cast<uint8_t>(i));
    std::vector<float> floats(static_cast<size_t>(n) + 1, 7);
    convert_elements(context_, kind.type, source.data(), ElementType::kF32, floats.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const double want = number_at(kind, source, i);
      const float got = floats[static_cast<size_t>(i)];
      EXPECT_TRUE(got == static_cast<float>(want) || (std::isnan(want) && std::isnan(got)))
          << kind.dtype << " " << i << ": " << got << ", expected " << want;
    }
    EXPECT_EQ(floats.back(), 7);
    convert_elements(context_, ElementType::kF32, floats.data(), kind.type, back.data(), n,
                     {.saturate = false});
    for (int64_t i = 0; i < n; ++i) {
      const double want = number_at(kind, source, i), got = number_at(kind, back, i);
      EXPECT_TRUE(want == got || (std::isnan(want) && std::isnan(got))) << kind.dtype << " " << i;
    }
    EXPECT_EQ(back.back(), 0xa5) << "nothing is written behind the last byte";
  }
}

TEST_P(Narrow, IntegersGoExactly) {
  const std::vector<int64_t> wide{-9, -8, -1, 0, 7, 8, 15, 16, (int64_t{1} << 53) + 1};
  std::vector<uint8_t> four(5);
  const auto n = static_cast<int64_t>(wide.size());
  convert_elements(context_, ElementType::kI64, wide.data(), ElementType::kS4, four.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t low = wide[static_cast<size_t>(i)] & 15;
    EXPECT_EQ(packed_integer_at(four.data(), TN_I4, i), low < 8 ? low : low - 16);
  }
}

TEST_P(Narrow, QuantizesByScalesOfAnAxisAndOfBlocks) {
  // [2, 3, 2]: scales of axis 1, then in blocks of two of it
  std::vector<float> x;
  for (int i = 0; i < 12; ++i)
    x.push_back(static_cast<float>(i) - 5.5f);
  const std::vector<float> by_axis{0.5f, 1, 2}, by_block{0.5f, 1, 2, 4, 0.25f, 8, 1, 3};
  struct Case {
    int64_t block;
    const std::vector<float>& scales;
  };
  for (const Case& one : {Case{0, by_axis}, Case{2, by_block}}) {
    AnyQuantizeArgs args{.from = ElementType::kF32,
                         .to = ElementType::kS4,
                         .scale = ElementType::kF32,
                         .axis = 3,
                         .inner = 2,
                         .block = one.block,
                         .n = 12};
    std::vector<uint8_t> stored(6), zeros(4, 0x11);  // all zero points are 1
    quantize_any(context_, args, x.data(), one.scales.data(), zeros.data(), stored.data());
    std::vector<float> again(12);
    std::swap(args.from, args.to);
    dequantize_any(context_, args, stored.data(), one.scales.data(), zeros.data(), again.data());
    for (int i = 0; i < 12; ++i) {
      const int along = i / 2 % 3;
      const size_t at =
          static_cast<size_t>(one.block == 0 ? along : (i / 6 * 2 + along / 2) * 2 + i % 2);
      const float scale = one.scales[at];
      const double want = std::clamp(
          std::nearbyint(static_cast<double>(x[static_cast<size_t>(i)] / scale)) + 1, -8.0, 7.0);
      EXPECT_EQ(packed_integer_at(stored.data(), TN_I4, i), want) << one.block << " " << i;
      EXPECT_EQ(again[static_cast<size_t>(i)], static_cast<float>((want - 1) * scale));
    }
  }
}

TENON_EACH_LEVEL(Narrow);

}  // namespace
}  // namespace tenon::onednn::kernels
