// SPDX-License-Identifier: Apache-2.0
// Random operators under vmap: refused, drawn once for all examples, or drawn for each.
#include <gmock/gmock.h>

#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int64_t kExamples = 5;

class RandomModes : public AutodiffTest {
 protected:
  // y of x: f32[n], with this node in between.
  static std::string graph_of(const std::string& node, int64_t n) {
    return cat("graph {\n  input %x: f32[", n, "]\n", node, "  %y: f32[", n,
               "] = Add(%x, %drawn) @y\n  output y = %y\n}");
  }
  // The results of kExamples equal examples of x, one for each.
  std::vector<Numbers> examples(const std::string& text, const std::string& mode, Numbers x) {
    OwnedGraph v =
        applied(parse(text), "autodiff.vmap", {{"axis_size", kExamples}, {"random", mode}});
    if (!v.get()) return {};
    size_t n = x.size();
    Numbers all;
    for (int64_t k = 0; k < kExamples; ++k)
      all.insert(all.end(), x.begin(), x.end());
    std::vector<Numbers> out = results(v, {all}), rows;
    EXPECT_EQ(out.at(0).size(), n * kExamples);
    for (auto from = out[0].begin(); from != out[0].end(); from += static_cast<std::ptrdiff_t>(n))
      rows.emplace_back(from, from + static_cast<std::ptrdiff_t>(n));
    return rows;
  }
  void check(const std::string& node, const std::string& refused_as) {
    SCOPED_TRACE(node);
    constexpr int64_t kSize = 40;
    std::string text = graph_of(node, kSize);
    Numbers x(kSize, 0.5);
    EXPECT_THAT(refused(text, "autodiff.vmap", {{"axis_size", kExamples}}),
                HasSubstr("operator " + refused_as +
                          " (node d): random numbers under vmap: option random: expected same"));
    std::vector<Numbers> same = examples(text, "same", x);
    EXPECT_THAT(same, Each(same.at(0)));
    EXPECT_EQ(same[0], results(parse(text), {x}).at(0)) << "one draw is that of one example";
    std::vector<Numbers> different = examples(text, "different", x);
    for (size_t i = 0; i < different.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        EXPECT_NE(different[i], different[k]) << "examples " << i << " and " << k;
    EXPECT_EQ(different, examples(text, "different", x)) << "runs repeat";
  }
};

TEST_F(RandomModes, OfEveryOperator) {
  check("  %drawn: f32[40] = RandomNormal() {shape = ints [40], seed = 3.0} @d\n", "RandomNormal");
  check("  %drawn: f32[40] = RandomUniform() {shape = ints [40]} @d\n", "RandomUniform");
  check("  %drawn: f32[40] = RandomNormalLike(%x) {seed = 3.0} @d\n", "RandomNormalLike");
  check("  %drawn: f32[40] = RandomUniformLike(%x) @d\n", "RandomUniformLike");
  check("  %drawn: f32[40] = Bernoulli(%x) {seed = 1.0} @d\n", "Bernoulli");
  check(R"(  constant %ratio: f32[] = [0.5]
  constant %yes: bool[] = x'01'
  %drawn: f32[40] = Dropout(%x, %ratio, %yes) {seed = 4} @d
)",
        "Dropout");
  check(R"(  constant %axis: i64[1] = [0]
  %row: f32[1, 40] = Unsqueeze(%x, %axis) @row
  %places: i32[1, 40] = Multinomial(%row) {sample_size = 40, seed = 2.0} @d
  %flat: i32[40] = Squeeze(%places, %axis) @flat
  %drawn: f32[40] = Cast(%flat) {to = dtype f32} @cast
)",
        "Multinomial");
}

TEST_F(RandomModes, AProbabilityOfItsOwnForEachExample) {
  OwnedGraph v = applied(parse(R"(graph {
    input %p: f32[100]
    %y: f32[100] = Bernoulli(%p) {seed = 9.0} @d
    output y = %y
  })"),
                         "autodiff.vmap", {{"axis_size", 2}, {"random", "same"}});
  Numbers p(200, 0.25);
  std::fill(p.begin() + 100, p.end(), 0.75);
  Numbers y = results(v, {p}).at(0);
  for (size_t i = 0; i < 100; ++i)
    EXPECT_LE(y[i], y[100 + i]) << "the same number is below the larger probability too";
  EXPECT_NEAR(std::count(y.begin(), y.begin() + 100, 1.0), 25, 15);
  EXPECT_NEAR(std::count(y.begin() + 100, y.end(), 1.0), 75, 15);
}

TEST_F(RandomModes, DropoutInInferenceDrawsNothing) {
  std::string text = graph_of("  %drawn: f32[3] = Dropout(%x) @d\n", 3);
  EXPECT_THAT(examples(text, "error", {1, 2, 3}), Each(Numbers{2, 4, 6}));
}

TEST_F(RandomModes, DropoutHasTheGradientOfItsMask) {
  OwnedGraph g = applied(parse(R"(graph {
    input %x: f32[64]
    constant %ratio: f32[] = [0.25]
    constant %yes: bool[] = x'01'
    %y: f32[64] = Dropout(%x, %ratio, %yes) {seed = 4} @d
    %s: f32[] = ReduceSum(%y) {keepdims = 0} @s
    output y = %y
    output s = %s
  })"),
                         "autodiff.value_and_grad", {{"output", "s"}, {"has_aux", true}});
  auto out = results(g, {Numbers(64, 1)});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0], out[2]) << "of ones, y is what x is multiplied by";
  EXPECT_THAT(out[2], testing::Contains(0.0));
  EXPECT_THAT(out[2], testing::Contains(testing::DoubleNear(4.0 / 3, 1e-6)));
}

}  // namespace
}  // namespace tenon::test
