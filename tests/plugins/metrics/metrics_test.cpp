// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

class Metric : public PluginTest {
 protected:
  void start(std::string_view id, const json& options = json::object()) {
    Result<Component> made = make("tenon.metric/1", id, options);
    ASSERT_TRUE(made.ok()) << text_of(made.status());
    metric_ = std::move(*made);
  }
  template <class L>
  std::string update(std::vector<int64_t> shape,
                     std::vector<float> out,
                     std::vector<int64_t> label_shape,
                     std::vector<L> label,
                     uint32_t label_type) {
    DenseView a(TN_F32, shape, out.data()), b(label_type, label_shape, label.data());
    const DLTensor* outs[] = {a.get()};
    const DLTensor* labels[] = {b.get()};
    return text_of(Status(metric_.table<tn_metric>()->update(metric_.self(), outs, 1, labels, 1)));
  }
  std::string compare(std::vector<int64_t> shape, std::vector<float> got, std::vector<float> want) {
    return update<float>(shape, std::move(got), shape, std::move(want), TN_F32);
  }
  double value(int32_t* higher = nullptr) {
    double out = -1;
    int32_t better = -1;
    EXPECT_EQ(text_of(Status(metric_.table<tn_metric>()->value(metric_.self(), &out, &better))),
              "");
    if (higher) *higher = better;
    return out;
  }
  json details() {
    StringSink sink;
    EXPECT_EQ(text_of(Status(metric_.table<tn_metric>()->details(metric_.self(), sink.get()))), "");
    return json::parse(sink.text);
  }
  Component metric_;
};

TEST_F(Metric, AccuracyCountsTheTopK) {
  std::vector<float> scores = {3, 2, 1, 1, 2, 3, 2, 3, 1};
  for (auto [k, right] : {std::pair{1, 1.0}, {2, 2.0}, {3, 3.0}}) {
    start("metrics.accuracy", {{"top_k", k}});
    EXPECT_EQ(update<int64_t>({3, 3}, scores, {3}, {0, 0, 0}, TN_I64), "");
    EXPECT_DOUBLE_EQ(value(), right / 3);
  }
}

TEST_F(Metric, AccuracyBreaksTiesByTheLowerClass) {
  start("metrics.accuracy");
  EXPECT_EQ(update<int32_t>({2, 2}, {1, 1, 1, 1}, {2, 1}, {0, 1}, TN_I32), "");
  EXPECT_DOUBLE_EQ(value(), 0.5);
}

TEST_F(Metric, AccuracyRefusesLabelsThatDoNotFit) {
  start("metrics.accuracy");
  EXPECT_THAT(update<int64_t>({1, 2}, {1, 2}, {1}, {2}, TN_I64), HasSubstr("expected 0 to 1"));
  EXPECT_THAT(update<int64_t>({1, 2}, {1, 2}, {2}, {0, 1}, TN_I64),
              HasSubstr("does not fit labels [2]"));
  EXPECT_THAT(update<float>({1, 2}, {1, 2}, {1}, {0}, TN_F32), HasSubstr("whole-number labels"));
}

TEST_F(Metric, AccuracyFindsNoTopKInClasses) {
  start("metrics.accuracy", {{"top_k", 2}});
  std::vector<int64_t> shape{1}, classes{1};
  DenseView answers(TN_I64, shape, classes.data());
  const DLTensor* given[] = {answers.get()};
  EXPECT_THAT(
      text_of(Status(metric_.table<tn_metric>()->update(metric_.self(), given, 1, given, 1))),
      HasSubstr("option top_k: expected float scores"));
}

TEST_F(Metric, AccuracyLeavesIgnoredLabelsOut) {
  start("metrics.accuracy", {{"ignore_index", -100}});
  EXPECT_EQ(update<int64_t>({3, 2}, {1, 2, 1, 2, 2, 1}, {3}, {1, -100, 1}, TN_I64), "");
  EXPECT_DOUBLE_EQ(value(), 0.5);
  start("metrics.accuracy");
  EXPECT_THAT(update<int64_t>({1, 2}, {1, 2}, {1}, {-100}, TN_I64),
              HasSubstr("expected 0 to 1; option ignore_index"));
}

TEST_F(Metric, AccuracyOfOneScoreIsBesideTheThreshold) {
  for (std::vector<int64_t> shape : {std::vector<int64_t>{4, 1}, {4}}) {
    start("metrics.accuracy", {{"threshold", 0}});
    EXPECT_EQ(update<int64_t>(shape, {1, -1, 0.25f, -2}, {4}, {1, 1, 1, 0}, TN_I64), "");
    EXPECT_DOUBLE_EQ(value(), 0.75);
  }
  start("metrics.accuracy");
  EXPECT_EQ(update<int64_t>({2, 3}, {1, 0, 1, 0, 1, 0}, {2, 3}, {1, 0, 0, 0, 1, 0}, TN_I64), "");
  EXPECT_DOUBLE_EQ(value(), 5.0 / 6);
}

// Two classes on axis 1 of [1, 2, 3].
TEST_F(Metric, ClassesAreOnTheAxisThatLabelsLeave) {
  std::vector<float> scores = {1, 0, 1, 0, 1, 0};
  start("metrics.accuracy");
  EXPECT_EQ(update<int64_t>({1, 2, 3}, scores, {1, 3}, {0, 1, 1}, TN_I64), "");
  EXPECT_DOUBLE_EQ(value(), 2.0 / 3);
  start("metrics.f1", {{"average", "micro"}});
  EXPECT_EQ(update<int64_t>({1, 2, 3}, scores, {1, 3}, {0, 1, 1}, TN_I64), "");
  EXPECT_DOUBLE_EQ(value(), 2.0 / 3);
  start("metrics.accuracy", {{"axis", 1}});  // both fit
  EXPECT_EQ(update<int64_t>({1, 2, 2}, {1, 1, 0, 0}, {1, 2}, {0, 0}, TN_I64), "");
  EXPECT_DOUBLE_EQ(value(), 1);
}

// By hand: class 0 has tp 1, fp 1, fn 0; class 1 has tp 0, fp 0, fn 1.
TEST_F(Metric, F1TakesSeveralLabelsOfASample) {
  const std::vector<float> scores = {1, 0, 1, 0};
  for (auto [average, wanted] :
       {std::pair{"macro", 1.0 / 3}, {"micro", 0.5}, {"weighted", 1.0 / 3}}) {
    start("metrics.f1", {{"average", average}});
    EXPECT_EQ(update<int64_t>({2, 2}, scores, {2, 2}, {1, 1, 0, 0}, TN_I64), "");
    EXPECT_DOUBLE_EQ(value(), wanted) << average;
  }
  start("metrics.auc");
  EXPECT_THAT(update<int64_t>({2, 2}, scores, {2, 2}, {1, 1, 0, 0}, TN_I64),
              HasSubstr("f1 takes several"));
}

// As scikit-learn: a label that nothing is of, and that is never predicted, counts with 0.
TEST_F(Metric, F1OfSeveralLabelsCountsEachOfThem) {
  for (auto [average, wanted] : {std::pair{"macro", 0.5}, {"micro", 1.0}, {"weighted", 1.0}}) {
    start("metrics.f1", {{"average", average}});
    EXPECT_EQ(update<int64_t>({2, 2}, {1, 0, 1, 0}, {2, 2}, {1, 0, 1, 0}, TN_I64), "");
    EXPECT_DOUBLE_EQ(value(), wanted) << average;
    start("metrics.f1", {{"average", average}});
    EXPECT_EQ(update<int64_t>({1, 2}, {0, 0}, {1, 2}, {0, 0}, TN_I64), "");
    EXPECT_EQ(value(), 0) << average;
  }
}

TEST_F(Metric, F1TakesScoresThatAreNoNumbersForNoClass) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  start("metrics.f1");
  EXPECT_EQ(update<int64_t>({2, 2}, {nan, nan, 1, nan}, {2}, {0, 0}, TN_I64), "");
  EXPECT_DOUBLE_EQ(value(), 2.0 / 3);
  start("metrics.f1", {{"average", "positive"}});
  EXPECT_EQ(update<int64_t>({2}, {nan, 1}, {2}, {0, 1}, TN_I64), "");
  EXPECT_DOUBLE_EQ(value(), 1);
}

TEST_F(Metric, CosineGivesMeanAndLowest) {
  start("metrics.cosine");
  EXPECT_EQ(compare({3, 2}, {1, 0, 0, 2, 0, 0}, {1, 1, 0, 1, 0, 0}), "");
  EXPECT_NEAR(value(), (1 / std::sqrt(2) + 1 + 1) / 3, 1e-12);
  EXPECT_NEAR(details()["min"].get<double>(), 1 / std::sqrt(2), 1e-12);
}

TEST_F(Metric, CosineOfNanIsZero) {
  start("metrics.cosine");
  EXPECT_EQ(compare({1, 2}, {std::numeric_limits<float>::quiet_NaN(), 0}, {1, 1}), "");
  EXPECT_EQ(value(), 0);
}

TEST_F(Metric, SnrIsInDecibels) {
  int32_t higher = 0;
  start("metrics.snr");
  EXPECT_EQ(compare({2}, {11, 0}, {10, 0}), "");
  EXPECT_NEAR(value(&higher), 20, 1e-9);
  EXPECT_EQ(higher, 1);
  start("metrics.snr");
  EXPECT_EQ(compare({2}, {1, 2}, {1, 2}), "");
  EXPECT_EQ(value(), 200);
}

TEST_F(Metric, MseIsTheMeanSquare) {
  int32_t higher = 1;
  start("metrics.mse");
  EXPECT_EQ(compare({2}, {1, 2}, {1, 4}), "");
  EXPECT_DOUBLE_EQ(value(&higher), 2);
  EXPECT_EQ(higher, 0);
  start("metrics.mse");  // a table has one number a sample where the model has a column
  EXPECT_EQ(update<float>({2, 1}, {1, 2}, {2}, {1, 4}, TN_F32), "");
  EXPECT_DOUBLE_EQ(value(), 2);
  EXPECT_THAT(update<float>({2}, {1, 2}, {3}, {1, 2, 3}, TN_F32),
              HasSubstr("shapes differ: output [2], expected [3]"));
}

// Steps of 3 classes (0 is the blank): best 1, 1, 0, 1, 2 decodes to 1 1 2.
std::vector<float> steps(std::vector<size_t> best) {
  std::vector<float> out(best.size() * 3, 0);
  for (size_t t = 0; t < best.size(); ++t)
    out[t * 3 + best[t]] = 1;
  return out;
}

TEST_F(Metric, CerMergesRepeatsAndDropsBlanks) {
  start("metrics.cer");
  EXPECT_EQ(update<int32_t>({1, 5, 3}, steps({1, 1, 0, 1, 2}), {1, 4}, {1, 1, 2, -1}, TN_I32), "");
  EXPECT_EQ(value(), 0);
  EXPECT_EQ(update<int32_t>({1, 5, 3}, steps({1, 1, 0, 1, 2}), {1, 4}, {2, 1, 2, 2}, TN_I32), "");
  EXPECT_DOUBLE_EQ(value(), 2.0 / 7);  // one replaced, one missing
  EXPECT_EQ(details()["lines_right"], 1);
}

TEST_F(Metric, CerShowsWrongLinesWithADictionary) {
  start("metrics.cer", {{"dictionary", write("d.txt", "a\nb\n")}, {"layout", "tnc"}});
  EXPECT_EQ(update<int32_t>({2, 1, 3}, steps({1, 2}), {1, 2}, {1, 1}, TN_I32), "");
  EXPECT_EQ(details()["examples"][0]["expected"], "aa");
  EXPECT_EQ(details()["examples"][0]["got"], "ab");
}

TEST_F(Metric, CerLeavesOutWhatFillsABatchUp) {
  start("metrics.cer", {{"layout", "tnc"}});
  EXPECT_EQ(update<int32_t>({2, 3, 3}, steps({1, 2, 2, 2, 2, 1}), {1, 2}, {1, 2}, TN_I32), "");
  EXPECT_EQ(value(), 0);
  EXPECT_EQ(details()["samples"], 1);
  EXPECT_THAT(update<int32_t>({1, 3, 3}, steps({1, 2, 2}), {1, 2}, {1, 2}, TN_I32),
              HasSubstr("scores [1, 3, 3] of 1 samples may lack steps"));
}

TEST_F(Metric, CerRefusesWhatDoesNotFit) {
  EXPECT_THAT(refusal("tenon.metric/1", "metrics.cer", {{"dictionary", "/no/such"}}),
              HasSubstr("option dictionary: cannot read /no/such"));
  start("metrics.cer", {{"dictionary", write("d.txt", "a\nb\nc\nd\n")}});
  EXPECT_THAT(update<int32_t>({1, 1, 3}, steps({1}), {1, 1}, {1}, TN_I32),
              HasSubstr("it has 4 lines, the model has 3 classes"));
  start("metrics.cer");
  EXPECT_THAT(update<int32_t>({1, 1, 3}, steps({1}), {1, 1}, {0}, TN_I32),
              HasSubstr("not the blank"));
  EXPECT_THAT(update<int32_t>({3}, steps({1}), {1, 1}, {1}, TN_I32), HasSubstr("rank 3"));
  start("metrics.cer", {{"blank", 3}});
  EXPECT_THAT(update<int32_t>({1, 1, 3}, steps({1}), {1, 1}, {1}, TN_I32),
              HasSubstr("option blank: expected a class below 3, got 3"));
  start("metrics.cer");
  EXPECT_THAT(update<int32_t>({1, 1, 3}, steps({1}), {1}, {1}, TN_I32),
              HasSubstr("padded with -1"));
}

// Figures of scikit-learn's f1_score on the example of its page.
TEST_F(Metric, F1HasTheMeansOfScikitLearn) {
  for (auto [average, wanted] :
       {std::pair{"macro", 0.8 / 3}, {"micro", 1.0 / 3}, {"weighted", 0.8 / 3}}) {
    start("metrics.f1", {{"average", average}});
    EXPECT_EQ(update<int64_t>({6, 3}, steps({0, 2, 1, 0, 0, 1}), {6}, {0, 1, 2, 0, 1, 2}, TN_I64),
              "");
    EXPECT_DOUBLE_EQ(value(), wanted) << average;
  }
  EXPECT_EQ(details()["classes"], json({0.8, 0, 0}));
}

// Two batches; a class that never occurs is none: 2/3 of class 0, 1 of class 1 (2 3/(3 + 4) = 6/7).
TEST_F(Metric, F1CountsOverBatches) {
  start("metrics.f1");
  EXPECT_EQ(update<int32_t>({2, 3}, steps({0, 1}), {2}, {0, 0}, TN_I32), "");
  EXPECT_EQ(update<int32_t>({3, 3}, steps({1, 1, 1}), {3}, {1, 1, 1}, TN_I32), "");
  EXPECT_DOUBLE_EQ(value(), (2.0 / 3 + 6.0 / 7) / 2);
  start("metrics.f1", {{"average", "positive"}, {"threshold", 0}});
  EXPECT_EQ(update<int32_t>({4, 1}, {-1, 2, 3, -4}, {4}, {0, 1, 0, 1}, TN_I32), "");
  EXPECT_DOUBLE_EQ(value(), 0.5);  // 1 right of 2 predicted, 1 of 2 found
}

TEST_F(Metric, AucSharesTheRanksOfEqualScores) {
  start("metrics.auc");
  EXPECT_EQ(update<int32_t>({2}, {.1f, .4f}, {2}, {0, 0}, TN_I32), "");
  EXPECT_EQ(update<int32_t>({3}, {.4f, .8f, .2f}, {3}, {1, 1, 1}, TN_I32), "");
  EXPECT_DOUBLE_EQ(value(), 0.75);
  // The same as logits of two classes, whatever is added to both.
  start("metrics.auc");
  EXPECT_EQ(update<int32_t>({5, 2}, {1, 1.125f, 0, 0.5f, 7, 7.5f, 0, 3, -1, -.75f}, {5},
                            {0, 0, 1, 1, 1}, TN_I32),
            "");
  EXPECT_DOUBLE_EQ(value(), 0.75);
}

TEST_F(Metric, AucRefusesTwoScoresOfOneInfinity) {
  start("metrics.auc");
  EXPECT_THAT(update<int32_t>({2, 2}, {1, 0, INFINITY, INFINITY}, {2}, {0, 1}, TN_I32),
              HasSubstr("sample 1: both scores are the same infinity"));
  start("metrics.auc");
  EXPECT_EQ(update<int32_t>({2, 2}, {1, -INFINITY, 0, INFINITY}, {2}, {0, 1}, TN_I32), "");
  EXPECT_DOUBLE_EQ(value(), 1);
}

// Class 0: of pairs with others .9 > .2 .3, .1 < both: 1/2; class 1: 3 of 3; class 2: 2 of 3.
TEST_F(Metric, AucOfMoreClassesIsTheMeanOfEachAgainstTheRest) {
  start("metrics.auc");
  EXPECT_EQ(update<int64_t>({4, 3}, {.9f, 0, .1f, .1f, .1f, .8f, .2f, .6f, .2f, .3f, .3f, .4f}, {4},
                            {0, 0, 1, 2}, TN_I64),
            "");
  EXPECT_DOUBLE_EQ(value(), (0.5 + 1 + 2.0 / 3) / 3);
  start("metrics.auc");
  EXPECT_EQ(update<int64_t>({2}, {1, 2}, {2}, {1, 1}, TN_I64), "");
  double out = 0;
  int32_t better = 0;
  EXPECT_THAT(text_of(Status(metric_.table<tn_metric>()->value(metric_.self(), &out, &better))),
              HasSubstr("at least two classes"));
}

// Batches of 1 and 3 labels: of the mean over labels, not of the mean of means.
TEST_F(Metric, PerplexityIsOverAllLabels) {
  int32_t higher = 1;
  start("metrics.perplexity", {{"scores", "probabilities"}, {"ignore_index", -1}});
  EXPECT_EQ(update<int64_t>({1, 2}, {.5f, .5f}, {1}, {0}, TN_I64), "");
  EXPECT_EQ(update<int64_t>({1, 4, 2}, {.25f, .75f, .75f, .25f, .5f, .5f, 1, 0}, {1, 4},
                            {0, 1, 1, -1}, TN_I64),
            "");
  EXPECT_DOUBLE_EQ(value(&higher), std::pow(2 * 4 * 4 * 2, 0.25));
  EXPECT_EQ(higher, 0);
  start("metrics.perplexity");  // of equal logits, as many as there are classes
  EXPECT_EQ(update<int64_t>({1, 3}, {1000, 1000, 1000}, {1}, {2}, TN_I64), "");
  EXPECT_NEAR(value(), 3, 1e-12);
}

TEST_F(Metric, ScoresThatDoNotFitLabelsAreRefused) {
  for (const char* id : {"metrics.f1", "metrics.auc", "metrics.perplexity"}) {
    start(id);
    EXPECT_THAT(update<int64_t>({1, 2}, {1, 2}, {1}, {2}, TN_I64), HasSubstr("expected 0 to 1"))
        << id;
    EXPECT_THAT(update<int64_t>({1, 2}, {1, 2}, {2}, {0, 1}, TN_I64), HasSubstr("does not fit"))
        << id;
    EXPECT_THAT(update<float>({1, 2}, {1, 2}, {1}, {0}, TN_F32), HasSubstr("whole-number")) << id;
  }
}

TEST_F(Metric, NothingSeenIsNoValue) {
  double out = 0;
  int32_t better = 0;
  for (const char* id : {"metrics.accuracy", "metrics.auc", "metrics.cer", "metrics.cosine",
                         "metrics.f1", "metrics.mse", "metrics.perplexity", "metrics.snr"}) {
    start(id);
    EXPECT_THAT(text_of(Status(metric_.table<tn_metric>()->value(metric_.self(), &out, &better))),
                HasSubstr("seen"));
  }
}

}  // namespace
}  // namespace tenon::test
