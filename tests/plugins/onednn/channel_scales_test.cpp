// SPDX-License-Identifier: Apache-2.0
// A scale for each channel of what a depthwise convolution reads. All scales are powers of two, so
// nothing is rounded differently anywhere.

#include "both_backends.hpp"
#include "cpu_has.hpp"

namespace tenon::test {
namespace {

std::string integers(int count, uint32_t seed) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::mt19937 random(seed);
  std::string text = "x'";
  for (int i = 0; i < 2 * count; ++i)
    text += kDigits[random() % 16];
  return text + "'\n";
}

constexpr int kChannels = 32;

// 2^-4, 2^-5, 2^-6 in turn.
std::string scales(uint32_t first) {
  constexpr const char* kPowers[] = {"0000803d", "0000003d", "0000803c"};
  std::string text = "x'";
  for (uint32_t i = 0; i < kChannels; ++i)
    text += kPowers[(i + first) % 3];
  return text + "'\n";
}

struct Case {
  const char* name;
  std::string type = "u8";
  std::string zeros = "00";  // of all channels, or of even and odd ones
  std::string activation = "Relu";
  bool is_read_twice = false;
  bool stays_in_8_bits = true;
};

std::string graph_of(const Case& c) {
  std::string zeros = "x'";
  while (zeros.size() < 2 + 2 * kChannels)
    zeros += c.zeros;
  const std::string whole = "f32[2, 32, 7, 6]", parameters = ", %as, %az) {axis = 1}";
  return R"(graph {
  input %x: f32[2, 8, 7, 6]
  constant %s: f32[] = [0.015625]
  constant %z: u8[] = [120]
  constant %ys: f32[] = [0.25]
  constant %w1: i8[32, 8, 1, 1] = )" +
         integers(kChannels * 8, 1) +
         "  constant %w2: i8[32, 1, 3, 3] = " + integers(kChannels * 9, 2) +
         "  constant %s1: f32[] = [0.0078125]\n  constant %s2: f32[32] = " + scales(1) +
         "  constant %as: f32[32] = " + scales(0) +
         "  constant %az: " + (c.type == "u8" ? "u8" : "i8") + "[32] = " + zeros + "'\n" + R"(
  %q: u8[2, 8, 7, 6] = QuantizeLinear(%x, %s, %z) @q
  %d: f32[2, 8, 7, 6] = DequantizeLinear(%q, %s, %z) @d
  %dw1: f32[32, 8, 1, 1] = DequantizeLinear(%w1, %s1) @w1
  %dw2: f32[32, 1, 3, 3] = DequantizeLinear(%w2, %s2) {axis = 0} @w2
  %c: )" +
         whole + " = Conv(%d, %dw1) @c\n  %a: " + whole + " = " + c.activation +
         "(%c) @a\n  %aq: " + c.type + "[2, 32, 7, 6] = QuantizeLinear(%a" + parameters +
         " @aq\n  %ad: " + whole + " = DequantizeLinear(%aq" + parameters + " @ad\n  %e: " + whole +
         " = Conv(%ad, %dw2) {group = 32, pads = ints [1, 1, 1, 1]} @e\n"
         "  %yq: u8[2, 32, 7, 6] = QuantizeLinear(%e, %ys, %z) @yq\n  %y: " +
         whole + " = DequantizeLinear(%yq, %ys, %z) @y\n  output y = %y\n" +
         (c.is_read_twice ? "  output a = %ad\n}" : "}");
}

class ChannelScales : public BothBackends, public testing::WithParamInterface<Case> {};

TEST_P(ChannelScales, GoToTheWeights) {
  const bool is_exact = GetParam().activation == "Relu";
  const std::string text = graph_of(GetParam());
  expect_same(text, is_exact ? 0 : 0.25 / 30);  // else a step of the result
  if (!has_vnni()) return;
  const Outcome got = run(parse(text), {{"backend", "onednn"}, {"threads", 2}});
  int n = 0;
  for (const json& part : got.plan["partitions"])
    for (const auto& [kernel, count] : part["kernels"].items())
      n += kernel == "tenon:depthwise" ? count.get<int>() : 0;
  EXPECT_EQ(n, GetParam().stays_in_8_bits ? 1 : 0) << got.plan;
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    ChannelScales,
    testing::Values(
        Case{.name = "Unsigned"},
        Case{.name = "SignedBehindAnActivation", .type = "i8", .activation = "HardSwish"},
        Case{.name = "OneZeroPointNotZero", .zeros = "12"},
        Case{.name = "SeveralZeroPoints", .zeros = "1122", .stays_in_8_bits = false},
        Case{.name = "AnotherReader", .is_read_twice = true, .stays_in_8_bits = false}),
    [](const auto& test) { return std::string(test.param.name); });

// One scale for all has no axis: what is said of it may be any number (UBSan watches).
class OneScale : public BothBackends {};

TEST_F(OneScale, NeedsNoAxis) {
  for (const char* axis : {"9223372036854775807", "-9223372036854775808", "7"}) {
    const std::string along = std::string(" {axis = ") + axis + "}";
    expect_same(R"(graph {
  input %x: f32[1, 4, 3, 3]
  constant %s: f32[] = [0.01]
  constant %z: u8[] = [128]
  %q: u8[1, 4, 3, 3] = QuantizeLinear(%x, %s, %z))" +
                along + R"( @quantize
  %d: f32[1, 4, 3, 3] = DequantizeLinear(%q, %s, %z))" +
                along + R"( @dequantize
  output y = %d
})");
  }
}

}  // namespace
}  // namespace tenon::test
