// SPDX-License-Identifier: Apache-2.0
#include "plugins/decomposer/decomposer_test.hpp"

namespace tenon::test {
namespace {

class Choice : public DecomposerTest {
 protected:
  // Whether the layer was replaced if and only if that measured faster, and says so.
  bool is_by_time(std::string_view name) {
    json done = row("decomposed", name), left = row("left", name);
    json ms = (done.is_null() ? left : done)["ms"];
    if (ms["backend"] != "reference" || ms["before"] <= 0) return false;
    if (ms["after"] < ms["before"]) return !done.is_null();
    return done.is_null() && why_left(name).starts_with("measured ");
  }
  // Two products: one of planted rank 3 with noise, one of random numbers.
  void build_two() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {4, 48});
      Floats noisy = planted(48, 48, 3, 1), noise = random(48 * 48, 3, 0.02f);
      for (size_t i = 0; i < noisy.size(); ++i)
        noisy[i] += noise[i];
      Value h = node(edit, "MatMul", {x, constant(edit, "w1", {48, 48}, noisy)}, "good");
      Value y = node(edit, "MatMul", {h, weight(edit, "w2", {48, 48}, 4)}, "bad");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
};

TEST_F(Choice, LeavesAWeightWithoutStructure) {
  build_two();

  ASSERT_EQ(apply("decomposer.svd", {{"rank", 8}}), "");

  EXPECT_EQ(row("decomposed", "good")["rank"], 8);
  EXPECT_THAT(why_left("bad"), HasSubstr("no low-rank structure"));
  json bad = row("left", "bad");
  EXPECT_NEAR(bad["error"].get<double>() / bad["random_error"].get<double>(), 1, 0.05);
  EXPECT_EQ(report_["counts"]["decomposed"], 1);
  EXPECT_EQ(report_["parameters"]["before"], 48 * 48);
}

TEST_F(Choice, LeavesErrorsOverTheLimit) {
  build_two();
  ASSERT_EQ(apply("decomposer.svd", {{"rank", 2}, {"max_error", 0.01}}), "");
  EXPECT_THAT(why_left("good"), HasSubstr("is over max_error 0.01"));
}

TEST_F(Choice, LeavesWhatWouldBeMoreWork) {
  build_two();
  ASSERT_EQ(apply("decomposer.svd", {{"rank", 24}, {"max_ratio", 10}}), "");
  EXPECT_THAT(why_left("good"), HasSubstr("FLOPs"));
  ASSERT_EQ(apply("decomposer.svd", {{"rank", 23}, {"max_ratio", 10}}), "");
  EXPECT_EQ(report_["counts"]["decomposed"], 2);
}

TEST_F(Choice, MeasuresWhenAsked) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {64, 192});
    Floats numbers = planted(192, 192, 2, 1);
    Value h = node(edit, "MatMul", {x, constant(edit, "w1", {192, 192}, numbers)}, "thin");
    Value y = node(edit, "MatMul", {h, constant(edit, "w2", {192, 192}, numbers)}, "full");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  json options{{"measure", true}, {"backend", "reference"}};

  options.update({{"rank", 2}, {"only", {"thin"}}});
  ASSERT_EQ(apply("decomposer.svd", options), "");
  EXPECT_TRUE(is_by_time("thin"));

  options.update({{"rank", 192}, {"only", {"full"}}});
  ASSERT_EQ(apply("decomposer.svd", options), "");
  EXPECT_TRUE(is_by_time("full"));

  options.update({{"allow_slower", true}});
  ASSERT_EQ(apply("decomposer.svd", options), "");
  EXPECT_EQ(report_["counts"]["decomposed"], 1);
}

TEST_F(Choice, CannotMeasureOpenSizes) {
  build_conv({8, 8, 3, 3}, random(576, 3), {-1, 8, -1, -1});
  ASSERT_EQ(apply("decomposer.tucker2",
                  {{"measure", true}, {"rank_in", 2}, {"rank_out", 2}, {"max_ratio", 10}}),
            "");
  EXPECT_THAT(why_left("conv"), HasSubstr("cannot be measured"));
}

TEST_F(Choice, SkipListsArePatterns) {
  build_two();
  ASSERT_EQ(apply("decomposer.svd", {{"rank", 3}, {"skip", {"g??d"}}}), "");
  EXPECT_EQ(why_left("good"), "in the skip list (g??d)");
  ASSERT_EQ(apply("decomposer.svd", {{"rank", 3}, {"only", "b*"}}), "");
  EXPECT_EQ(why_left("good"), "not in the list of option only");
}

TEST_F(Choice, ReportsTheSameWithEverySeedButForTheBaseline) {
  build_two();
  ASSERT_EQ(apply("decomposer.svd", {{"rank", 8}, {"seed", 1}}), "");
  json one = row("decomposed", "good");
  ASSERT_EQ(apply("decomposer.svd", {{"rank", 8}, {"seed", 2}}), "");
  json two = row("decomposed", "good");
  EXPECT_EQ(one["error"], two["error"]);
  EXPECT_NE(one["random_error"], two["random_error"]);
}

TEST_F(Choice, AModelWithoutWeightsStaysAsItIs) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 2});
    ASSERT_EQ(text_of(edit.output("y", node(edit, "Relu", {x}, "relu"))), "");
  });
  ASSERT_EQ(apply("decomposer.svd", json::object()), "");
  EXPECT_EQ(report_["counts"]["left"], 0);
}

}  // namespace
}  // namespace tenon::test
