// SPDX-License-Identifier: Apache-2.0
#include "plugins/decomposer/decomposer_test.hpp"

namespace tenon::test {
namespace {

class Cp : public DecomposerTest {
 protected:
  // [n_out, n_in, 3, 3]: a sum of `rank` outer products.
  Floats planted_cp(int64_t n_out, int64_t n_in, int64_t rank) {
    auto factor = [&](int64_t n, uint64_t seed) {
      return random(static_cast<size_t>(n * rank), seed);
    };
    Floats u = factor(n_out, 1), v = factor(n_in, 2), rows = factor(3, 3), columns = factor(3, 4);
    Floats out;
    for (int64_t o = 0; o < n_out; ++o)
      for (int64_t i = 0; i < n_in; ++i)
        for (int64_t k = 0; k < 9; ++k) {
          double sum = 0;
          for (int64_t r = 0; r < rank; ++r)
            sum += double{u[static_cast<size_t>(o * rank + r)]} *
                   double{v[static_cast<size_t>(i * rank + r)]} *
                   double{rows[static_cast<size_t>(k / 3 * rank + r)]} *
                   double{columns[static_cast<size_t>(k % 3 * rank + r)]};
          out.push_back(static_cast<float>(0.1 * sum));
        }
    return out;
  }
};

TEST_F(Cp, KeepsStridesPadsAndDilations) {
  std::vector<int64_t> strides{2, 1}, dilations{1, 2}, pads{0, 2, 1, 3};
  build_conv({16, 12, 3, 3}, planted_cp(16, 12, 2), {2, 12, 9, 12},
             {{"strides", strides}, {"dilations", dilations}, {"pads", pads}});

  ASSERT_EQ(apply("decomposer.cp", {{"rank", 2}, {"iterations", 300}}), "");

  json conv = row("decomposed", "conv");
  EXPECT_LE(conv["error"], 1e-4);
  EXPECT_EQ(conv["parameters"]["after"], 2 * (12 + 3 + 3 + 16));
  EXPECT_EQ(count_ops("Conv"), 4u);
  // 9 x 12 come in, 4 x 12 after the column, 4 x 13 at the end.
  EXPECT_EQ(conv["flops"]["after"], 2.0 * 2 * 2 * (12 * 9 * 12 + 3 * 4 * 12 + (3 + 16) * 4 * 13));
  EXPECT_LE(difference({2, 12, 9, 12}), 1e-3);
}

TEST_F(Cp, FindsTheRankFromTheUnfoldings) {
  build_conv({16, 12, 3, 3}, planted_cp(16, 12, 3), {1, 12, 6, 6});
  ASSERT_EQ(apply("decomposer.cp", json::object()), "");
  json found = row("decomposed", "conv");
  EXPECT_EQ(found["rank"], 3);
}

TEST_F(Cp, RanksByErrorAreWithinIt) {
  build_conv({16, 12, 3, 3}, planted_cp(16, 12, 20), {1, 12, 6, 6});
  const json options{{"rank", "error"}, {"max_ratio", 9}, {"allow_slower", true}};
  for (double error : {0.3, 0.15}) {
    json asked = options;
    asked["error"] = error;
    ASSERT_EQ(apply("decomposer.cp", asked), "");
    EXPECT_LE(row("decomposed", "conv")["error"].get<double>(), error);
  }
}

TEST_F(Cp, AnErrorThatNoRankMeetsLeavesTheLayer) {
  build_conv({16, 12, 3, 3}, random(16 * 12 * 9, 4), {1, 12, 6, 6});

  ASSERT_EQ(apply("decomposer.cp", {{"rank", "error"}, {"max_ratio", 9}}), "");

  EXPECT_THAT(why_left("conv"),
              HasSubstr("no rank that saves weights has an error of 0.1 at most"));
}

TEST_F(Cp, LeavesWhatItCannotDo) {
  build_conv({8, 8, 3}, random(8 * 8 * 3, 1), {1, 8, 9});
  ASSERT_EQ(apply("decomposer.cp", json::object()), "");
  EXPECT_THAT(why_left("conv"), HasSubstr("its window has 1 dimensions: expected 2"));
  EXPECT_THAT(refusal("tenon.pass/1", "decomposer.cp", {{"rank", "tucker"}}),
              HasSubstr("option rank: expected a number from 1"));
}

TEST_F(Cp, ARankOutOfRangeIsRefused) {
  build_conv({4, 3, 3, 3}, random(4 * 3 * 9, 1), {1, 3, 6, 6});
  EXPECT_THAT(apply("decomposer.cp", {{"rank", 28}, {"only", {"conv"}}}),
              HasSubstr("rank: expected at most 27, got 28"));
}

}  // namespace
}  // namespace tenon::test
