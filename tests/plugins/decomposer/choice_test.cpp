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

TEST_F(Choice, MeasuresWithoutBeingAsked) {
  build_two();
  ASSERT_EQ(PassTest::apply("decomposer.svd", {{"rank", 3}, {"backend", "reference"}}), "");
  EXPECT_TRUE(is_by_time("good"));
}

// Open sizes cannot run: there the FLOPs decide, and the report says so.
TEST_F(Choice, GoesByFlopsWhereSizesAreOpen) {
  build_conv({8, 8, 3, 3}, random(576, 3), {-1, 8, -1, -1});
  json options{{"measure", true}, {"rank_in", 2}, {"rank_out", 2}, {"max_ratio", 10}};
  ASSERT_EQ(apply("decomposer.tucker2", options), "");
  EXPECT_EQ(row("decomposed", "conv")["unmeasured"], "the sizes of its input are not known");
  options.update({{"rank_in", 8}, {"rank_out", 8}});
  ASSERT_EQ(apply("decomposer.tucker2", options), "");
  EXPECT_THAT(why_left("conv"), HasSubstr("FLOPs where the layer needs"));
}

TEST_F(Choice, RanksByTimeAreWithinIt) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {64, 256});
    Floats numbers = random(256 * 256, 1);
    Value y = node(edit, "MatMul", {x, constant(edit, "w", {256, 256}, numbers)}, "fc");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  json options{{"measure", true}, {"time", 0.7}, {"max_ratio", 9}, {"backend", "reference"}};
  ASSERT_EQ(apply("decomposer.svd", options), "");
  json found = row("decomposed", "fc");
  ASSERT_FALSE(found.is_null()) << why_left("fc");
  EXPECT_LE(found["ms"]["after"].get<double>(), 0.7 * found["ms"]["before"].get<double>());
  EXPECT_GT(found["rank"].get<int>(), 4);  // not the least there is

  options["time"] = 1e-6;
  ASSERT_EQ(apply("decomposer.svd", options), "");
  EXPECT_THAT(why_left("fc"), HasSubstr("option time: no ranks leave"));
  options["budget"] = 0.5;
  EXPECT_THAT(apply("decomposer.svd", options),
              HasSubstr("option time: expected no budget beside it"));
}

TEST_F(Choice, RanksByErrorAreTheLeastWithinIt) {
  build_two();
  ASSERT_EQ(apply("decomposer.svd", {{"rank", "error"}, {"error", 0.3}, {"max_ratio", 9}}), "");
  json found = row("decomposed", "good");
  EXPECT_LE(found["error"].get<double>(), 0.3);
  int64_t rank = found["rank"];
  ASSERT_EQ(apply("decomposer.svd", {{"rank", rank - 1}, {"max_ratio", 9}}), "");
  EXPECT_GT(row("decomposed", "good")["error"].get<double>(), 0.3);
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
