// SPDX-License-Identifier: Apache-2.0
// ConvInteger as dynamic quantization writes it: exact on onednn, or left to the reference with the
// reason.
#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class ConvInteger : public BothBackends {
 protected:
  static std::string graph_of(const std::string& weight_shape,
                              const std::string& weights,
                              const std::string& zero_points,
                              const std::string& rest) {
    return R"(graph {
  input %x: f32[1, 4, 5, 5]
  constant %w: i8)" +
           weight_shape + " = " + weights + R"(
  constant %wz: i8)" +
           zero_points + R"(
  %q: u8[1, 4, 5, 5], %s: f32[], %z: u8[] = DynamicQuantizeLinear(%x) @quantize
)" + rest + "\n}";
  }
  static std::string numbers(int n) {
    std::string text = "[";
    for (int i = 0; i < n; ++i)
      text += (i > 0 ? ", " : "") + std::to_string(i * 37 % 255 - 127);
    return text + "]";
  }
};

TEST_F(ConvInteger, SumsThatCastsRead) {
  expect_same(graph_of(
      "[3, 4, 2, 2]", numbers(48), "[3] = [3, -5, 0]",
      R"(  %c: i32[1, 3, 6, 6] = ConvInteger(%q, %w, %z, %wz) {pads = ints [1, 1, 1, 1]} @conv
  %f: f32[1, 3, 6, 6] = Cast(%c) {to = dtype f32} @cast
  %y: f32[1, 3, 6, 6] = Mul(%f, %s) @scale
  output y = %y)"));
}

TEST_F(ConvInteger, SumsThatAreReadAsIntegersToo) {
  expect_same(graph_of("[4, 1, 3, 3]", numbers(36), "[] = [-7]",
                       R"(  %c: i32[1, 4, 3, 3] = ConvInteger(%q, %w, %z, %wz) {group = 4} @conv
  %f: f32[1, 4, 3, 3] = Cast(%c) {to = dtype f32} @cast
  output c = %c
  output f = %f)"),
              0);
}

TEST_F(ConvInteger, WithoutZeroPoints) {
  expect_same(graph_of("[2, 4, 1, 1]", numbers(8), "[] = [0]",
                       R"(  %c: i32[1, 2, 5, 5] = ConvInteger(%q, %w) @conv
  output c = %c)"),
              0);
}

// As large as what runs by minimal filtering, and as what is kept in bf16.
TEST_F(ConvInteger, SumsOfManyChannelsAndPixels) {
  std::string weights = "x'";
  for (int i = 0; i < 32 * 32 * 9; ++i) {
    constexpr const char* kDigits = "0123456789abcdef";
    const int byte = i * 37 % 101 + 27;
    weights += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  const std::string text = "graph {\n  constant %w: i8[32, 32, 3, 3] = " + weights + R"('
  input %x: u8[1, 32, 24, 24]
  %c: i32[1, 32, 24, 24] = ConvInteger(%x, %w) {pads = ints [1, 1, 1, 1]} @conv
  %f: f32[1, 32, 24, 24] = Cast(%c) {to = dtype f32} @cast
  output c = %c
  output f = %f
})";
  OwnedGraph graph = parse(text);
  Outcome expected = run(graph, {{"backend", "reference"}});
  ASSERT_EQ(expected.error, "");
  for (const char* precision : {"fp32", "bf16"}) {
    Outcome got = run(graph, {{"backend", "onednn"}, {"precision", precision}});
    ASSERT_EQ(got.error, "");
    EXPECT_EQ(got.plan["fallback_nodes"], json::array());
    EXPECT_EQ(got.outputs, expected.outputs) << precision;
  }
}

TEST_F(ConvInteger, SumsThatFloatsDoNotHold) {
  std::string many = "x'";
  for (int i = 0; i < 4 * 17 * 17; ++i)
    many += "7f";
  many += "'";
  Outcome got = run(
      parse(graph_of(
          "[1, 4, 17, 17]", many, "[] = [-128]",
          R"(  %c: i32[1, 1, 5, 5] = ConvInteger(%q, %w, %z, %wz) {pads = ints [8, 8, 8, 8]} @conv
  output c = %c)")),
      {{"backend", "onednn"}});

  ASSERT_EQ(got.error, "");
  ASSERT_EQ(got.plan["fallback_nodes"].size(), 1U);
  EXPECT_THAT(got.plan["fallback_nodes"][0]["why"], testing::HasSubstr("may pass 2^24"));
}

}  // namespace
}  // namespace tenon::test
