// SPDX-License-Identifier: Apache-2.0
// Uniform numbers against Philox4x32-10 one block at a time, and against the authors' own answers.

#include "kernels/draws.h"

#include <array>
#include <numbers>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

using Words = std::array<uint32_t, 4>;

Words philox(uint64_t seed, uint64_t stream, uint64_t block) {
  auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  Words c = {low(block), high(block), low(stream), high(stream)};
  uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {high(b) ^ c[1] ^ k0, low(b), high(a) ^ c[3] ^ k1, low(a)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

float number(uint64_t seed, uint64_t stream, uint64_t i, double low = 0, double scale = 1) {
  const Words words = philox(seed, stream, i / 2);
  const uint64_t upper = words[i % 2 * 2 + 1], lower = words[i % 2 * 2];
  const double unit = static_cast<double>((upper << 32 | lower) >> 11) * 0x1p-53;
  return static_cast<float>(low + scale * unit);
}

// kat_vectors of Random123, philox4x32 with 10 rounds.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(UINT64_MAX, UINT64_MAX, UINT64_MAX),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

class Draws : public EachLevel {};

TEST_P(Draws, AreThoseOfTheGenerator) {
  constexpr std::array<uint64_t, 2> kKeys[] = {
      {0, 0}, {7, 1}, {UINT64_MAX, UINT64_MAX}, {0x299f31d0a4093822, 0x0370734413198a2e}};
  for (const auto& [seed, stream] : kKeys)
    for (int64_t n : {0, 1, 2, 7, 31, 63, 64, 65, 1000, 20001}) {
      std::vector<float> got(static_cast<uint64_t>(n) + 1, 7.0F);
      draw_uniform(context_, {seed, stream}, got.data(), n);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(got[static_cast<uint64_t>(i)], number(seed, stream, static_cast<uint64_t>(i)))
            << "number " << i << " of " << n;
      EXPECT_EQ(got.back(), 7.0F);
    }
}

TEST_P(Draws, AreScaledBeforeTheyAreRounded) {
  std::vector<float> got(300);
  draw_uniform(context_, {5, 6, -0.3, 2.7, 2.4F}, got.data(), 300);
  for (uint64_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], number(5, 6, i, -0.3, 2.7)) << i;
}

// Box and Muller, "A note on the generation of random normal deviates", 1958.
double normal(uint64_t seed, uint64_t stream, uint64_t i) {
  const Words words = philox(seed, stream, i / 2);
  auto unit = [&](size_t low) {
    const uint64_t bits = (uint64_t{words[low + 1]} << 32 | words[low]) >> 11;
    return static_cast<double>(bits) * 0x1p-53;
  };
  const double radius = std::sqrt(-2 * std::log(1 - unit(0)));
  const double angle = 2 * std::numbers::pi * unit(2);
  return radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

TEST_P(Draws, AreNormal) {
  for (int64_t n : {1, 3, 511, 512, 513, 5000}) {
    std::vector<float> got(static_cast<uint64_t>(n) + 1, 7.0F);
    draw_normal(context_, {8, 9, 0.5, 3}, got.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const double want = 0.5 + 3 * normal(8, 9, static_cast<uint64_t>(i));
      ASSERT_NEAR(got[static_cast<uint64_t>(i)], want, 1e-7 * std::max(1.0, std::fabs(want))) << i;
    }
    EXPECT_EQ(got.back(), 7.0F);
  }
}

// Blocks beyond 32 bits, as the table has them.
TEST_P(Draws, CountBlocksIn64Bits) {
  constexpr uint64_t kFirst = (uint64_t{1} << 32) - 5;
  std::vector<float> got(200);
  context_.table->uniform_blocks({{3, 4}, kFirst, got.data(), 200});
  for (uint64_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], number(3, 4, 2 * kFirst + i)) << i;
}

TENON_EACH_LEVEL(Draws);

}  // namespace
}  // namespace tenon::onednn::kernels
