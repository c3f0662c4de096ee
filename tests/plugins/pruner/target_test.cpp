// SPDX-License-Identifier: Apache-2.0
// Ratios that are found by what is to be left, and runs that change nothing.
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

class PruningTarget : public PruningTest {
 protected:
  void SetUp() override {
    PruningTest::SetUp();
    build([&](EditView edit) {
      Value x = relu(edit, conv(edit, input(edit, "x", {-1, 3, 6, 6}), "a", {40, 3, 3, 3}), "ra");
      x = relu(edit, conv(edit, x, "b", {40, 40, 1, 1}), "rb");
      classify(edit, x, 40);
    });
  }
};

TEST_F(PruningTarget, OfMultiplyAddsOrParametersIsMetByTheLeastRatio) {
  for (std::string what : {"macs", "parameters"}) {
    ASSERT_EQ(apply("pruner.structured", {{"target", {{what, 0.5}}}}), "");

    double left = report_[what]["ratio"];
    EXPECT_LE(left, 0.5);
    EXPECT_GT(left, 0.42) << "one channel less was enough";
    EXPECT_EQ(report_["target"]["left"], left);
    double ratio = report_["ratio"];
    ASSERT_EQ(apply("pruner.structured", {{"ratio", ratio}}), "");
    EXPECT_EQ(report_[what]["ratio"], left);
  }
}

TEST_F(PruningTarget, OverAllLayersKeepsOneChannelOfEach) {
  ASSERT_EQ(apply("pruner.structured", {{"target", {{"macs", 0.2}}}, {"scope", "global"}}), "");

  EXPECT_LE(report_["macs"]["ratio"], 0.2);
  EXPECT_GT(report_["macs"]["ratio"], 0.12);
}

TEST_F(PruningTarget, OfTimeIsMeasured) {
  std::string why = apply("pruner.structured", {{"target", {{"time", 0.9}}}});

  if (why.empty()) {
    EXPECT_LE(report_["target"]["left"], 0.9);
    EXPECT_LT(report_["macs"]["ratio"], 1);
  } else {  // on a machine that is busy with something else
    EXPECT_THAT(why, HasSubstr("option target: expected a share that can be met"));
  }
}

TEST_F(PruningTarget, ThatCannotBeMetSaysTheNearest) {
  EXPECT_THAT(apply("pruner.structured", {{"target", {{"macs", 0.3}}}, {"skip", "a"}}),
              HasSubstr("got {\"macs\":0.3}, the nearest is 0.4"));
  EXPECT_THAT(apply("pruner.structured", {{"target", {{"flops", 0.3}}}}),
              HasSubstr("option target: expected one of macs, parameters, time"));
  EXPECT_THAT(apply("pruner.structured", {{"target", {{"macs", 1.5}}}}),
              HasSubstr("option target: expected one of macs, parameters, time"));
}

TEST_F(PruningTarget, ADryRunReportsAndChangesNothing) {
  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5}, {"dry_run", true}}), "");

  EXPECT_EQ(report_["dry_run"], true);
  double would = report_["macs"]["ratio"];
  EXPECT_EQ(result_.view().find("b.w").type().dims, (std::vector<int64_t>{40, 40, 1, 1}));
  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.5}}), "");
  EXPECT_EQ(report_["macs"]["ratio"], would);

  ASSERT_EQ(apply("pruner.structured", {{"apply", "mask"}, {"dry_run", true}}), "");
  EXPECT_EQ(report_["parameters"]["ratio"], 1);
  EXPECT_LT(report_["nonzero"]["ratio"], 0.9);

  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}, {"dry_run", true}}), "");
  EXPECT_LT(report_["nonzero"]["ratio"], 0.6);
  Tensor w = result_.view().find("b.w").constant();
  EXPECT_EQ(std::count(w.data<float>(), w.data<float>() + 1600, 0.0F), 0);
}

class PruningShares : public PruningTest {};

// 0.3 of six are 1.8 and of sixteen 4.8: all together lose 6.6, so one part of a channel goes.
TEST_F(PruningShares, PartsOfAChannelGoOfTheLargerLayerByWhateverScores) {
  build([&](EditView edit) {
    Value x = relu(edit, conv(edit, input(edit, "x", {-1, 3, 6, 6}), "a", {6, 3, 3, 3}), "ra");
    x = relu(edit, conv(edit, x, "b", {16, 6, 1, 1}), "rb");
    classify(edit, x, 16);
  });
  for (int seed = 0; seed < 8; ++seed) {
    ASSERT_EQ(
        apply("pruner.structured",
              {{"ratio", 0.3}, {"importance", "random"}, {"importance_options", {{"seed", seed}}}}),
        "");
    EXPECT_EQ(group("a")["kept"], 5) << seed;
    EXPECT_EQ(group("b")["kept"], 11) << seed;
  }
}

}  // namespace
}  // namespace tenon::test
