// SPDX-License-Identifier: Apache-2.0
// Sizes that a model computes, as exporters write them.
#include "fusion_test.hpp"

namespace tenon::test {
namespace {

using SizesTest = FusionTest;

TEST_F(SizesTest, KnownSizesAreConstantsOnlyWhereSomethingElseReadsThem) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 3]
  input %i: i64[1]
  constant %at: i64[1] = [1]
  %sizes: i64[2] = Shape(%x) @shape
  %size: i64[1] = Gather(%sizes, %at) @gather
  %both: i64[3] = Concat(%sizes, %size) {axis = 0} @concat
  %more: i64[3] = Add(%both, %i) @add
  output more = %more
  output size = %size
})");

  std::string report;
  EXPECT_EQ(text(apply(graph, "fusion.constants", &report)), R"(graph {
  input %x: f32[2, 3]
  input %i: i64[1]
  constant %size: i64[1] = [3]
  constant %both: i64[3] = [2, 3, 3]
  %more: i64[3] = Add(%both, %i) @add
  output more = %more
  output size = %size
}
)");
  EXPECT_EQ(report, R"({"changes": {"constants": 3}})");
}

// Each Reshape makes known what the next one asks for; all of it is found while the sizes of the
// input are inferred, and no round computes what inference has noted.
TEST_F(SizesTest, ReshapesToComputedSizesFollowOneAnother) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 3]
  constant %zero: i64[1] = [0]
  constant %one: i64[1] = [1]
  %sizes: i64[2] = Shape(%x) @shape
  %last: i64[1] = Gather(%sizes, %one) @last
  %first: i64[1] = Gather(%sizes, %zero) @first
  %reversed: i64[2] = Concat(%last, %first) {axis = 0} @reversed
  %a: f32[?, ?] = Reshape(%x, %reversed) @a
  %sizes_a: i64[2] = Shape(%a) @shape_a
  %last_a: i64[1] = Gather(%sizes_a, %one) @last_a
  %both: i64[2] = Concat(%last_a, %last) {axis = 0} @both
  %b: f32[?, ?] = Reshape(%a, %both) @b
  output y = %b
})");

  OwnedGraph folded = apply(graph, "fusion.constants");

  EXPECT_THAT(operators(folded), testing::ElementsAre("Reshape", "Reshape"));
  EXPECT_EQ(run(folded), run(graph));
}

}  // namespace
}  // namespace tenon::test
