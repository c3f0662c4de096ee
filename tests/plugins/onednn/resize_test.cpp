// SPDX-License-Identifier: Apache-2.0
// Resize of numbers that are no f32: the nearest are moved as they are.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class NearestNumbers : public BothBackends, public testing::WithParamInterface<const char*> {};

TEST_P(NearestNumbers, AreMovedAsTheyAre) {
  const std::string type = GetParam();
  for (const char* rule : {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}) {
    for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
      SCOPED_TRACE(cat(rule, " ", nearest));
      const std::string text =
          cat("graph {\n  input %x: ", type, R"([2, 3, 6, 9]
  constant %n: f32[0] = []
  constant %f: f32[4] = [1, 1, 0.5, 1.7]
  %y: )",
              type, "[2, 3, 3, 15] = Resize(%x, %n, %f)",
              " {mode = \"nearest\", coordinate_transformation_mode = \"", rule,
              "\", nearest_mode = \"", nearest, "\"} @n\n  output y = %y\n}");
      expect_same(text, 0);
      const json plan = run(parse(text), {{"backend", "onednn"}}).plan;
      EXPECT_EQ(plan["fallback_nodes"].size(), 0U) << plan["fallback_nodes"];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         NearestNumbers,
                         testing::Values("u8", "i8", "i16", "i32", "i64", "bool", "f64"),
                         [](const auto& test) { return std::string(test.param); });

// A double holds no odd number above 2^53.
TEST_F(BothBackends, TheNearestOfWideIntegersKeepTheirDigits) {
  const char* text = R"(graph {
  input %i: i64[2]
  constant %zero: i64[] = [0]
  constant %much: i64[2] = [9007199254740993, -9007199254740995]
  constant %less: i64[4] = [9007199254740992, 9007199254740992, -9007199254740992, -9007199254740992]
  constant %n: f32[0] = []
  constant %f: f32[1] = [2]
  %m: i64[2] = Mul(%i, %zero) @n1
  %x: i64[2] = Add(%m, %much) @n2
  %r: i64[4] = Resize(%x, %n, %f) {mode = "nearest"} @n3
  %y: i64[4] = Sub(%r, %less) @n4
  output y = %y
})";
  for (const char* backend : {"reference", "onednn"})
    EXPECT_THAT(run(parse(text), {{"backend", backend}}).outputs[0],
                testing::ElementsAre(1, 1, -3, -3));
}

// As in models of QLinearConv, whose results lie channels-last.
TEST_F(BothBackends, TheNearestBytesOfAConvolutionStayInTheBackend) {
  for (const char* factor : {"2, 2", "0.5, 3"}) {
    const std::string dims = std::string(factor) == "2, 2" ? "12, 12" : "3, 18";
    const std::string text = cat(
        R"(graph {
  input %x: f32[1, 16, 6, 6]
  constant %s: f32[] = [0.05]
  constant %z: u8[] = [120]
  constant %n: f32[0] = []
  constant %f: f32[4] = [1, 1, )",
        factor, R"(]
  %a: u8[1, 16, 6, 6] = QuantizeLinear(%x, %s, %z) @n1
  %t: u8[1, 6, 6, 16] = Transpose(%a) {perm = ints [0, 2, 3, 1]} @n2
  %b: u8[1, 16, 6, 6] = Transpose(%t) {perm = ints [0, 3, 1, 2]} @n3
  %c: u8[1, 16, )",
        dims,
        R"(] = Resize(%b, %n, %f) {mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric"} @n4
  %y: f32[1, 16, )",
        dims, R"(] = DequantizeLinear(%c, %s, %z) @n5
  output y = %y
})");
    expect_same(text, 0);
    const json plan = run(parse(text), {{"backend", "onednn"}}).plan;
    EXPECT_EQ(plan["fallback_nodes"].size(), 0U) << plan["fallback_nodes"];
  }
}

// Means of integers are rounded, which is the reference's to do.
TEST_F(BothBackends, MeansOfIntegersAreThoseOfTheReference) {
  const OwnedGraph graph = parse(R"(graph {
  input %x: u8[1, 2, 6, 6]
  constant %n: f32[0] = []
  constant %f: f32[4] = [1, 1, 2, 2]
  %y: u8[1, 2, 12, 12] = Resize(%x, %n, %f) {mode = "linear"} @n
  output y = %y
})");
  const Outcome got = run(graph, {{"backend", "onednn"}});
  EXPECT_EQ(got.plan["fallback_nodes"].size(), 1U);
  EXPECT_EQ(got.outputs, run(graph, {{"backend", "reference"}}).outputs);
}

}  // namespace
}  // namespace tenon::test
