// SPDX-License-Identifier: Apache-2.0
// Patterns of the SDK (tenon/sdk/match.hpp) on graphs with the standard operators.
#include "tenon/sdk/match.hpp"

#include "fusion_test.hpp"

namespace tenon::test {
namespace {

class PatternTest : public FusionTest {
 protected:
  // The match of the node that makes the first output.
  std::optional<Match> match(const OwnedGraph& graph, std::string_view text) {
    Result<Pattern> pattern = Pattern::parse(text);
    EXPECT_TRUE(pattern.ok());
    return pattern->match(graph.view().outputs()[0].producer());
  }
};

constexpr const char* kGraph = R"(graph {
  input %x: f32[2]
  input %z: f32[2]
  constant %two: f32[] = [2]
  %a: f32[2] = Mul(%two, %x) @a
  %b: f32[2] = Sub(%a, %z) @b
  %y: f32[2] = Add(%b, %a) @y
  output y = %y
})";

TEST_F(PatternTest, OperandsOfCommutativeOperatorsMatchInAnyOrder) {
  OwnedGraph graph = parse(kGraph);

  std::optional<Match> found = match(graph, "Add(Mul:product(x, 2), Sub(Mul(x, 2), z))");

  ASSERT_TRUE(found);
  EXPECT_EQ((*found)["x"].name(), "x");
  EXPECT_EQ((*found)["z"].name(), "z");
  EXPECT_EQ(found->node("product").name(), "a");
  EXPECT_EQ(found->nodes.size(), 3u);
}

TEST_F(PatternTest, OperandsOfOthersMatchInTheirOrder) {
  EXPECT_FALSE(match(parse(kGraph), "Add(Sub(z, Mul(x, 2)), Mul(x, 2))"));
}

TEST_F(PatternTest, OneNameIsOneValue) {
  EXPECT_FALSE(match(parse(kGraph), "Add(Sub(Mul(x, 2), x), Mul(x, 2))"));
}

TEST_F(PatternTest, ANumberMustBeTheConstants) {
  EXPECT_FALSE(match(parse(kGraph), "Add(Sub(Mul(x, 3), z), Mul(x, 3))"));
}

TEST_F(PatternTest, WhatOthersUseIsNoInnerNode) {
  std::string text = kGraph;
  text.insert(text.rfind("output"), "output b = %b\n  ");

  EXPECT_FALSE(match(parse(text), "Add(Sub(a, z), a)"));
}

TEST_F(PatternTest, ATextThatIsNoPatternIsRefused) {
  for (const char* text : {"", "x", "Add(x", "Add(x,)", "Add(x, y) z", "Add x"}) {
    Result<Pattern> pattern = Pattern::parse(text);
    EXPECT_FALSE(pattern.ok()) << text;
  }
}

}  // namespace
}  // namespace tenon::test
