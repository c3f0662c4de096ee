// SPDX-License-Identifier: Apache-2.0
#include "plugins/decomposer/decomposer_test.hpp"

namespace tenon::test {
namespace {

class Tucker2 : public DecomposerTest {
 protected:
  // [n_out, n_in, window]: an outer product of planted factors, of ranks (out, in).
  Floats planted_conv(int64_t n_out, int64_t n_in, int64_t window, int64_t out, int64_t in) {
    Floats u = random(static_cast<size_t>(n_out * out), 31);
    Floats v = random(static_cast<size_t>(n_in * in), 32);
    Floats core = random(static_cast<size_t>(out * in * window), 33);
    Floats w(static_cast<size_t>(n_out * n_in * window), 0);
    for (int64_t o = 0; o < n_out; ++o)
      for (int64_t i = 0; i < n_in; ++i)
        for (int64_t k = 0; k < window; ++k) {
          double sum = 0;
          for (int64_t a = 0; a < out; ++a)
            for (int64_t b = 0; b < in; ++b)
              sum += double{u[static_cast<size_t>(o * out + a)]} *
                     double{v[static_cast<size_t>(i * in + b)]} *
                     double{core[static_cast<size_t>((a * in + b) * window + k)]};
          w[static_cast<size_t>((o * n_in + i) * window + k)] = static_cast<float>(0.05 * sum);
        }
    return w;
  }
  void build_planted(const std::vector<int64_t>& x, const std::vector<Attr>& attrs) {
    build_conv({20, 16, 3, 3}, planted_conv(20, 16, 9, 4, 3), x, attrs);
  }
};

// Reference figures: training_golden "tucker", [294912, 34816].
TEST_F(Tucker2, ParametersOfTheGoldenLayer) {
  std::vector<int64_t> pads{1, 1, 1, 1};
  build_conv({256, 128, 3, 3}, random(256 * 128 * 9, 4), {1, 128, 8, 8}, {{"pads", pads}});

  ASSERT_EQ(apply("decomposer.tucker2",
                  {{"rank_in", 64}, {"rank_out", 32}, {"max_ratio", 10}, {"iterations", 1}}),
            "");

  json conv = row("decomposed", "conv");
  EXPECT_EQ(conv["rank_in"], 64);
  EXPECT_EQ(conv["rank_out"], 32);
  EXPECT_EQ(conv["parameters"]["before"], 294912);
  EXPECT_EQ(conv["parameters"]["after"], 34816);
  EXPECT_EQ(conv["flops"]["after"], 2.0 * 34816 * 64);
  EXPECT_EQ(count_ops("Conv"), 3u);
}

TEST_F(Tucker2, FindsPlantedRanks) {
  std::vector<int64_t> pads{1, 1, 1, 1};
  build_planted({2, 16, 9, 8}, {{"pads", pads}});

  ASSERT_EQ(apply("decomposer.tucker2", json::object()), "");

  json conv = row("decomposed", "conv");
  EXPECT_EQ(conv["rank_in"], 3);
  EXPECT_EQ(conv["rank_out"], 4);
  EXPECT_LE(conv["error"], 1e-5);
  EXPECT_GE(conv["random_error"], 0.8);
  EXPECT_LE(difference({2, 16, 9, 8}), 1e-5);
}

TEST_F(Tucker2, KeepsStridesPadsAndDilations) {
  std::vector<int64_t> strides{2, 1}, dilations{1, 2}, pads{0, 2, 1, 3};
  build_planted({2, 16, 9, 12}, {{"strides", strides}, {"dilations", dilations}, {"pads", pads}});

  ASSERT_EQ(apply("decomposer.tucker2", json::object()), "");

  json conv = row("decomposed", "conv");
  // 9 x 12 places come in, 4 x 13 go out: the first 1x1 runs at the larger size.
  EXPECT_EQ(conv["flops"]["before"], 2.0 * 20 * 16 * 9 * 2 * 4 * 13);
  EXPECT_EQ(conv["flops"]["after"], 2.0 * 2 * (16 * 3 * 9 * 12 + (4 * 3 * 9 + 4 * 20) * 4 * 13));
  EXPECT_LE(difference({2, 16, 9, 12}), 1e-5);
}

TEST_F(Tucker2, KeepsAutomaticPadding) {
  std::vector<int64_t> strides{2, 2};
  build_planted({1, 16, 9, 10}, {{"strides", strides}, {"auto_pad", "SAME_LOWER"}});

  ASSERT_EQ(apply("decomposer.tucker2", json::object()), "");

  EXPECT_EQ(report_["counts"]["decomposed"], 1);
  EXPECT_LE(difference({1, 16, 9, 10}), 1e-5);
}

TEST_F(Tucker2, TakesOneAndThreeDimensions) {
  build_conv({20, 16, 5}, planted_conv(20, 16, 5, 4, 3), {2, 16, 11});
  ASSERT_EQ(apply("decomposer.tucker2", json::object()), "");
  EXPECT_EQ(report_["counts"]["decomposed"], 1);
  EXPECT_LE(difference({2, 16, 11}), 1e-5);

  SetUp();
  build_conv({20, 16, 2, 1, 3}, planted_conv(20, 16, 6, 4, 3), {1, 16, 4, 5, 6});
  ASSERT_EQ(apply("decomposer.tucker2", json::object()), "");
  EXPECT_EQ(report_["counts"]["decomposed"], 1);
  EXPECT_LE(difference({1, 16, 4, 5, 6}), 1e-5);
}

TEST_F(Tucker2, FullRanksEqualTheOriginal) {
  build_conv({6, 5, 3, 3}, random(6 * 5 * 9, 8), {1, 5, 7, 7});

  ASSERT_EQ(apply("decomposer.tucker2", {{"rank_in", 5}, {"rank_out", 6}, {"allow_slower", true}}),
            "");

  EXPECT_EQ(report_["counts"]["decomposed"], 1);
  EXPECT_LE(difference({1, 5, 7, 7}), 1e-5);
}

TEST_F(Tucker2, CountsWorkWhereSizesAreOpen) {
  build_planted({-1, 16, -1, -1}, {});

  ASSERT_EQ(apply("decomposer.tucker2", json::object()), "");

  json conv = row("decomposed", "conv");
  EXPECT_EQ(conv["flops"]["before"], 2.0 * 20 * 16 * 9);
  EXPECT_EQ(conv["flops"]["per"], "output position: sizes are not known");
  EXPECT_LE(difference({2, 16, 6, 5}), 1e-5);
}

TEST_F(Tucker2, CountsATransposedConvolutionByWhatItReads) {
  for (int64_t size : {9, -1}) {
    const int64_t stride = size < 0 ? 2 : 1;
    build([&](EditView edit) {
      Value x = input(edit, "x", {1, 8, size, size});
      Value y = node(edit, "ConvTranspose", {x, weight(edit, "w", {8, 6, 3, 3}, 1)}, "up",
                     {{"strides", std::vector<int64_t>{stride, stride}}});
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });

    ASSERT_EQ(apply("decomposer.tucker2", {{"rank_in", 2}, {"rank_out", 3}, {"max_ratio", 9}}), "");

    const double read = size < 0 ? 1 : 9 * 9, made = size < 0 ? 2 * 2 : 11 * 11;
    json up = row("decomposed", "up");
    EXPECT_EQ(up["flops"]["before"], 2 * 8 * 6 * 9 * read);
    EXPECT_EQ(up["flops"]["after"], 2 * (8 * 2 * read + 2 * 3 * 9 * read + 3 * 6 * made));
    model_ = {};
    SetUp();
  }
}

TEST_F(Tucker2, LeavesGroupsPointsAndProducts) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {1, 8, 6, 6});
    Value a =
        node(edit, "Conv", {x, weight(edit, "w1", {8, 1, 3, 3}, 1)}, "depthwise", {{"group", 8}});
    Value b = node(edit, "Conv", {a, weight(edit, "w2", {8, 8, 1, 1}, 2)}, "point");
    Value c = node(edit, "MatMul", {b, weight(edit, "w3", {4, 4}, 3)}, "product");
    ASSERT_EQ(text_of(edit.output("y", c)), "");
  });

  ASSERT_EQ(apply("decomposer.tucker2", json::object()), "");

  EXPECT_THAT(why_left("depthwise"), HasSubstr("a convolution in 8 groups"));
  EXPECT_THAT(why_left("point"), HasSubstr("use decomposer.svd"));
  EXPECT_THAT(why_left("product"), HasSubstr("use decomposer.svd"));
  EXPECT_FALSE(row("left", "depthwise").contains("suited"));
  EXPECT_EQ(row("left", "product")["suited"], "decomposer.svd");
}

TEST_F(Tucker2, ALayerThatIsNamedMustBeOneThatItCanDo) {
  build_conv({8, 1, 3, 3}, random(72, 1), {1, 8, 6, 6}, {{"group", 8}});
  EXPECT_THAT(apply("decomposer.tucker2", {{"only", {"conv"}}}),
              HasSubstr("option only: node conv: a convolution in 8 groups"));
  EXPECT_THAT(apply("decomposer.tucker2", {{"only", {"cnv"}}}), HasSubstr("'cnv' matches no node"));
  EXPECT_EQ(apply("decomposer.tucker2", {{"only", {"con*"}}}), "");
}

TEST_F(Tucker2, ARankOutOfRangeIsRefused) {
  build_planted({1, 16, 6, 6}, {});
  EXPECT_THAT(apply("decomposer.tucker2", {{"rank_in", 17}, {"only", {"conv"}}}),
              HasSubstr("rank_in: expected at most 16, got 17"));
  ASSERT_EQ(apply("decomposer.tucker2", {{"rank_out", 21}}), "");
  EXPECT_THAT(why_left("conv"), HasSubstr("rank_out: expected at most 20, got 21"));
  EXPECT_THAT(refusal("tenon.pass/1", "decomposer.tucker2", {{"rank_in", 0}}),
              HasSubstr("rank_in"));
  EXPECT_THAT(refusal("tenon.pass/1", "decomposer.tucker2", {{"rank", "evbfm"}}),
              HasSubstr("did you mean 'evbmf'"));
}

TEST_F(Tucker2, OptionsMoveTheRanks) {
  build_conv({24, 16, 3, 3}, random(24 * 16 * 9, 8), {1, 16, 6, 6});
  json all{{"max_ratio", 10}, {"allow_slower", true}, {"rank", "energy"}};
  auto ranks = [&](json more) {
    json options = all;
    options.update(more);
    EXPECT_EQ(apply("decomposer.tucker2", options), "");
    json conv = row("decomposed", "conv");
    return std::pair<int, int>(conv["rank_in"], conv["rank_out"]);
  };
  auto [in, out] = ranks({{"energy", 0.5}});
  auto [more_in, more_out] = ranks({{"energy", 0.8}});
  EXPECT_LT(in, more_in);
  EXPECT_LT(out, more_out);
  auto [even_in, even_out] = ranks({{"energy", 0.5}, {"multiple", 8}});
  EXPECT_EQ(even_in, (in + 7) / 8 * 8);
  EXPECT_EQ(even_out, (out + 7) / 8 * 8);
  auto [cut_in, cut_out] = ranks({{"energy", 0.999}, {"min_error", 0.4}});
  EXPECT_LT(cut_in, 16);
  EXPECT_LT(cut_out, 24);
  EXPECT_LE(row("decomposed", "conv")["error"], 0.4);
  auto [weak_in, weak_out] = ranks({{"rank", "evbmf"}, {"weaken", 1}});
  EXPECT_EQ(weak_in, 16);
  EXPECT_EQ(weak_out, 24);
}

}  // namespace
}  // namespace tenon::test
