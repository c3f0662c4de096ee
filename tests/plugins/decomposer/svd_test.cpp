// SPDX-License-Identifier: Apache-2.0
#include "plugins/decomposer/decomposer_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;

class Svd : public DecomposerTest {};

TEST_F(Svd, FindsAPlantedRankOfAMatMul) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 40});
    Value y = node(edit, "MatMul", {x, constant(edit, "w", {40, 30}, planted(40, 30, 4, 1))}, "fc");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(apply("decomposer.svd", json::object()), "");

  json fc = row("decomposed", "fc");
  EXPECT_EQ(fc["rank"], 4);
  EXPECT_LE(fc["error"], 1e-5);
  EXPECT_EQ(fc["parameters"]["before"], 1200);
  EXPECT_EQ(fc["parameters"]["after"], 4 * 70);
  EXPECT_EQ(count_ops("MatMul"), 2u);
  EXPECT_LE(difference({7, 40}), 1e-5);
}

TEST_F(Svd, KeepsNamesOfTheLayer) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {3, 40});
    Value h = node(edit, "MatMul", {x, constant(edit, "w", {40, 30}, planted(40, 30, 4, 1))}, "fc");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "Relu", {h}, "relu"))), "");
  });

  ASSERT_EQ(apply("decomposer.svd", {{"rank", 4}}), "");

  EXPECT_THAT(reads("fc"), ElementsAre("fc_in", "w_out"));
  EXPECT_THAT(reads("fc_in"), ElementsAre("x", "w_in"));
  EXPECT_THAT(reads("relu"), ElementsAre("fc"));
}

TEST_F(Svd, TakesGemmInEveryForm) {
  for (int trans_a : {0, 1})
    for (int trans_b : {0, 1}) {
      SetUp();
      build([&](EditView edit) {
        Value x =
            input(edit, "x", trans_a ? std::vector<int64_t>{24, 5} : std::vector<int64_t>{5, 24});
        std::vector<int64_t> shape =
            trans_b ? std::vector<int64_t>{18, 24} : std::vector<int64_t>{24, 18};
        Value w = constant(edit, "w", shape, planted(shape[0], shape[1], 3, 5));
        Value y = node(edit, "Gemm", {x, w, weight(edit, "c", {18}, 6)}, "fc",
                       {{"transA", trans_a}, {"transB", trans_b}, {"alpha", 0.5}, {"beta", 2.0}});
        ASSERT_EQ(text_of(edit.output("y", y)), "");
      });

      ASSERT_EQ(apply("decomposer.svd", {{"rank", "energy"}, {"energy", 1.0 - 1e-9}}), "");

      EXPECT_EQ(row("decomposed", "fc")["rank"], 3) << trans_a << trans_b;
      EXPECT_LE(difference(trans_a ? std::vector<int64_t>{24, 5} : std::vector<int64_t>{5, 24}),
                1e-5);
    }
}

TEST_F(Svd, FullRankEqualsTheOriginal) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {4, 12});
    Value y = node(edit, "MatMul", {x, weight(edit, "w", {12, 9}, 3)}, "fc");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  ASSERT_EQ(apply("decomposer.svd", {{"rank", 9}, {"allow_slower", true}}), "");

  EXPECT_EQ(report_["counts"]["decomposed"], 1);
  EXPECT_LE(difference({4, 12}), 1e-5);
}

TEST_F(Svd, StridesAndPadsOfAPointwiseConvolutionGoToTheFirst) {
  std::vector<int64_t> strides{2, 2}, pads{1, 0, 1, 2};
  build_conv({24, 16, 1, 1}, planted(24, 16, 3, 9), {2, 16, 9, 7},
             {{"strides", strides}, {"pads", pads}});

  ASSERT_EQ(apply("decomposer.svd", json::object()), "");

  json conv = row("decomposed", "conv");
  EXPECT_EQ(conv["rank"], 3);
  // 6 x 5 places, a batch of 2, two operations for each weight, in both.
  EXPECT_EQ(conv["flops"]["before"], 2.0 * 24 * 16 * 2 * 6 * 5);
  EXPECT_EQ(conv["flops"]["after"], 2.0 * 3 * (24 + 16) * 2 * 6 * 5);
  EXPECT_LE(difference({2, 16, 9, 7}), 1e-5);
}

TEST_F(Svd, SaysThatAWeightIsAStack) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {4, 5, 8});
    ASSERT_EQ(text_of(edit.output(
                  "y", node(edit, "MatMul", {x, weight(edit, "w", {4, 8, 6}, 1)}, "stack"))),
              "");
  });

  ASSERT_EQ(apply("decomposer.svd", {{"rank", 2}}), "");

  EXPECT_THAT(why_left("stack"), HasSubstr("its weight is a stack of matrices"));
}

TEST_F(Svd, LeavesWhatItCannotDo) {
  std::vector<int64_t> pads{1, 1, 1, 1};
  build([&](EditView edit) {
    Value x = input(edit, "x", {1, 8, 6, 6});
    Value a =
        node(edit, "Conv", {x, weight(edit, "w1", {8, 8, 3, 3}, 1)}, "wide", {{"pads", pads}});
    Value b =
        node(edit, "Conv", {a, weight(edit, "w2", {8, 2, 1, 1}, 2)}, "grouped", {{"group", 4}});
    Value shared = weight(edit, "w3", {8, 8, 1, 1}, 3);
    Value c = node(edit, "Conv", {b, shared}, "first");
    Value d = node(edit, "Conv", {c, shared}, "second");
    Value zero = constant(edit, "w4", {8, 8, 1, 1}, Floats(64, 0));
    Value e = node(edit, "Conv", {d, zero}, "empty");
    Floats bad(64, 1);
    bad[5] = NAN;
    Value f = node(edit, "Conv", {e, constant(edit, "w5", {8, 8, 1, 1}, bad)}, "broken");
    Value g =
        node(edit, "ConvTranspose", {f, weight(edit, "w6", {8, 2, 1, 1}, 6)}, "up", {{"group", 4}});
    ASSERT_EQ(text_of(edit.output("y", g)), "");
  });

  ASSERT_EQ(apply("decomposer.svd", {{"rank", 2}, {"max_ratio", 10}}), "");

  EXPECT_THAT(why_left("wide"), HasSubstr("use decomposer.tucker2"));
  EXPECT_THAT(why_left("grouped"), HasSubstr("a convolution in 4 groups"));
  EXPECT_THAT(why_left("first"), HasSubstr("shared by 2 nodes"));
  EXPECT_THAT(why_left("empty"), HasSubstr("all zeros"));
  EXPECT_THAT(why_left("broken"), HasSubstr("NaN or infinity"));
  EXPECT_THAT(why_left("up"), HasSubstr("a convolution in 4 groups"));
  EXPECT_EQ(report_["counts"]["decomposed"], 0);
}

TEST_F(Svd, LeavesAQuantizedModelAlone) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 4});
    auto w = edit.constant<int8_t>(TN_I8, {4, 4}, std::vector<int8_t>(16, 3), "w");
    auto scale = edit.constant<float>(TN_F32, {}, std::vector<float>{0.1f}, "scale");
    Value real = node(edit, "DequantizeLinear", {*w, *scale}, "dq");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {x, real}, "fc"))), "");
  });

  ASSERT_EQ(apply("decomposer.svd", json::object()), "");

  EXPECT_THAT(why_left("fc"), HasSubstr("decompose the float model first"));
}

TEST_F(Svd, BadRanksAreRefused) {
  EXPECT_THAT(
      refusal("tenon.pass/1", "decomposer.svd", {{"rank", "evbm"}}),
      HasSubstr(
          "option rank: expected a number from 1, or one of energy, error, evbmf, got 'evbm'"));
  EXPECT_THAT(refusal("tenon.pass/1", "decomposer.svd", {{"rank", 0}}), HasSubstr("rank"));
  EXPECT_THAT(refusal("tenon.pass/1", "decomposer.svd", {{"energy", 1.5}}), HasSubstr("energy"));
  EXPECT_THAT(refusal("tenon.pass/1", "decomposer.svd", {{"ranks", 3}}), HasSubstr("ranks"));
}

}  // namespace
}  // namespace tenon::test
