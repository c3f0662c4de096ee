// SPDX-License-Identifier: Apache-2.0
// A Concat of results that lie end to end is no step of its own, where they were made for it alone.

#include <gtest/gtest.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

class ConcatElision : public BothBackends {
 protected:
  int steps_of(const std::string& body) {
    OwnedGraph graph = parse("graph {\n  input %x: f32[4, 16]\n" + body + "\n}");
    Outcome expected = run(graph, {{"backend", "reference"}});
    Outcome got = run(graph, {{"backend", "onednn"}});
    EXPECT_EQ(expected.error + got.error, "");
    if (!expected.error.empty() || !got.error.empty()) return -1;
    for (size_t k = 0; k < expected.outputs.size(); ++k)
      expect_near(got.outputs[k], expected.outputs[k], 1e-6);
    return got.plan["partitions"][0]["steps"].get<int>();
  }
};

const std::string kBoth = R"(  %a: f32[4, 16] = Softmax(%x) {axis = 0} @a
  %b: f32[4, 16] = Softmax(%x) {axis = 1} @b
)";
const std::string kJoin = "  %c: f32[8, 16] = Concat(%a, %b) {axis = 0} @c\n";
// The last of them is made in the caller's memory, where nothing else is put.
const std::string kUse = R"(  %u: f32[8, 16] = Softmax(%c) {axis = 0} @u
  %y: f32[8, 16] = Softmax(%u) {axis = 1} @y
  output y = %y)";

TEST_F(ConcatElision, MakesInputsInTheirPlaces) {
  EXPECT_EQ(steps_of(kBoth + kJoin + kUse), 4);
}

TEST_F(ConcatElision, GoesThroughConcatsOfConcats) {
  EXPECT_EQ(steps_of(kBoth + kJoin + R"(  %d: f32[8, 16] = Softmax(%c) {axis = 0} @d
  %e: f32[4, 16] = Softmax(%x) {axis = -1} @e
  %f: f32[12, 16] = Concat(%d, %e) {axis = 0} @f
  %g: f32[12, 16] = Softmax(%f) {axis = 0} @g
  %y: f32[12, 16] = Softmax(%g) {axis = 1} @y
  output y = %y)"),
            6);
}

TEST_F(ConcatElision, CopiesWhatIsReadLater) {
  EXPECT_EQ(steps_of(kBoth + kJoin + kUse + R"(
  %z: f32[4, 16] = Softmax(%a) {axis = 1} @z
  output z = %z)"),
            6);
}

TEST_F(ConcatElision, CopiesWhatIsThereTwice) {
  EXPECT_EQ(steps_of(kBoth + "  %c: f32[8, 16] = Concat(%b, %b) {axis = 0} @c\n" + kUse), 4);
}

TEST_F(ConcatElision, CopiesInputsOfTheGraph) {
  EXPECT_EQ(steps_of("  %a: f32[4, 16] = Softmax(%x) {axis = 0} @a\n"
                     "  %c: f32[8, 16] = Concat(%a, %x) {axis = 0} @c\n" +
                     kUse),
            4);
}

TEST_F(ConcatElision, CopiesWhatWouldNotLieOnALine) {
  EXPECT_EQ(steps_of(R"(  input %w: f32[3, 5]
  %a: f32[3, 5] = Softmax(%w) {axis = 0} @a
  %b: f32[3, 5] = Softmax(%w) {axis = 1} @b
  %c: f32[6, 5] = Concat(%a, %b) {axis = 0} @c
  %u: f32[6, 5] = Softmax(%c) {axis = 0} @u
  %y: f32[6, 5] = Softmax(%u) {axis = 1} @y
  output y = %y)"),
            5);
}

}  // namespace
}  // namespace tenon::test
