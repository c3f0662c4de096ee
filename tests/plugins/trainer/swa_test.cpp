// SPDX-License-Identifier: Apache-2.0
// Stochastic weight averaging.
#include <cmath>
#include <numbers>

#include "run_session.hpp"

namespace tenon::test {
namespace {

// The same behind a product whose columns are normalized.
constexpr std::string_view kNormalized = R"(graph {
  input %x: f32[n, 2]
  constant %u: f32[2, 3] = [1, -2, 0.5, 3, 1, -1]
  constant %scale: f32[3] = [1, 1, 1]
  constant %shift: f32[3] = [0, 0, 0]
  constant %mean: f32[3] = [0, 0, 0]
  constant %variance: f32[3] = [1, 1, 1]
  constant %w: f32[3, 2] = [1, 0, 0, 1, 1, 1]
  %xu: f32[n, 3] = MatMul(%x, %u) @product
  %normal: f32[n, 3] = BatchNormalization(%xu, %scale, %shift, %mean, %variance) {epsilon = 1e-05} @norm
  %y: f32[n, 2] = MatMul(%normal, %w) @head
  output y = %y
}
)";

class Swa : public RunFolder {
 protected:
  void SetUp() override {
    RunFolder::SetUp();
    options_.erase("patience");
    options_.erase("run");
  }
  std::vector<float> trained(const char* name, json more = json::object()) {
    json all = options_;
    all.update(more);
    auto made = train(model_, rows(), all);
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return made.ok() ? weight(*made, name) : std::vector<float>();
  }
};

TEST_F(Swa, IsTheMeanOfTheWeightsOfEpochs) {
  std::vector<double> mean(4);
  for (int epochs : {2, 4, 6}) {
    std::vector<float> w = trained("w", {{"epochs", epochs}});
    for (size_t i = 0; i < 4; ++i)
      mean[i] += w[i] / 3.0;
  }
  std::vector<float> w = trained("w", {{"epochs", 6}, {"swa", {{"begin", 1}, {"every", 2}}}});
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(w[i], mean[i], 1e-6);
  EXPECT_EQ(report_["history"][5]["averaged"], 3);
  EXPECT_FALSE(report_["history"][0].contains("averaged"));
}

TEST_F(Swa, BeginsAfterThreeQuartersOfTheEpochs) {
  trained("w", {{"epochs", 8}, {"swa", json::object()}});
  EXPECT_FALSE(report_["history"][5].contains("averaged"));
  EXPECT_EQ(report_["history"][6]["averaged"], 1);
}

TEST_F(Swa, StatisticsAreThoseOfTheMean) {
  model_ = parse(kNormalized);
  options_["shuffle"] = false;
  options_.erase("validation");
  json swa{{"swa", {{"begin", 1}}}, {"batch", 10}};  // 50 rows
  std::vector<float> u = trained("u", swa), mean = trained("mean", swa),
                     variance = trained("variance", swa);
  for (size_t c = 0; c < 3; ++c) {
    double all = 0, of_batches = 0;
    for (int first = 0; first < 50; first += 10) {
      double sum = 0, squares = 0;
      for (int i = first; i < first + 10; ++i) {
        double a = (i * 37 % 101) / 101.0, b = (i * 53 % 103) / 103.0;
        double x = a * double{u[c]} + b * double{u[3 + c]};
        sum += x / 10;
        squares += x * x / 10;
      }
      all += sum / 5;
      of_batches += (squares - sum * sum) / 5;
    }
    EXPECT_NEAR(mean[c], all, 1e-4);
    EXPECT_NEAR(variance[c], of_batches, 1e-4);
  }
}

TEST_F(Swa, StatisticsDoNotReadWhatIsHeldOut) {
  model_ = parse(kNormalized);
  json swa{{"swa", {{"begin", 1}}}, {"batch", 40}};
  std::vector<float> of_share = trained("mean", swa);
  ASSERT_EQ(of_share.size(), 3u);
  swa["validation"] = 0.5;  // fewer samples
  EXPECT_NE(trained("mean", swa), of_share);
}

// PyTorch's SWALR: swa_lr a + lr (1 - a), a = (1 - cos(pi t)) / 2.
TEST_F(Swa, TheRateGoesToItsOwn) {
  json swa{{"begin", 2}, {"rate", 0.5}, {"anneal", 2}};
  trained("w", {{"epochs", 6}, {"swa", swa}});  // five steps each, the last one is reported
  for (int epoch = 1; epoch <= 6; ++epoch) {
    double at = (5 * epoch - 1) / 5.0, gone = std::min(1.0, std::max(0.0, (at - 2) / 2));
    double share = (1 - std::cos(std::numbers::pi * gone)) / 2;
    EXPECT_NEAR(report_["history"][epoch - 1]["rate"], 0.5 * share + 0.1 * (1 - share), 1e-12);
  }
}

TEST_F(Swa, AnInterruptedRunGoesOnToTheSameBits) {
  options_["swa"] = {{"begin", 1}};
  std::vector<float> whole = trained("w");
  options_["run"] = run();
  for (int batches : {3, 5, 7, 2}) {
    ASSERT_THAT(interrupted_after(batches), HasSubstr("stopped after step"));
    options_["resume"] = true;
  }
  EXPECT_EQ(trained("w"), whole);
}

TEST_F(Swa, TheBestOfTheMeansIsGivenBack) {
  model_ = parse(kNormalized);
  options_["patience"] = 1;
  options_["min_delta"] = 1e9;  // the first epoch is the best
  json swa{{"swa", {{"begin", 0}}}};
  std::vector<float> first = trained("mean", {{"epochs", 1}, {"swa", {{"begin", 0}}}});
  EXPECT_EQ(trained("mean", swa), first);
  EXPECT_EQ(report_["best_epoch"], 1);
}

TEST_F(Swa, BadOptionsAreNamed) {
  auto said = [&](json swa, json more = json::object()) {
    json all = options_;
    all["swa"] = swa;
    all.update(more);
    return failure(model_, rows(), all);
  };
  EXPECT_THAT(said({{"start", 1}}), HasSubstr("option swa: expected begin, every, rate, anneal, "
                                              "statistics, got 'start'"));
  EXPECT_THAT(said({{"begin", 4}}), HasSubstr("fewer than the 4 epochs of the training, got 4"));
  EXPECT_THAT(said({{"every", 0}}), HasSubstr("every: expected a whole number of at least 1"));
  EXPECT_THAT(said({{"rate", -1}}), HasSubstr("rate: expected a number of at least 0, got -1"));
  EXPECT_THAT(said({{"anneal", 1}}), HasSubstr("anneal: expected rate"));
  EXPECT_THAT(said({{"begin", 1}}, {{"average", 0.9}}), HasSubstr("without option average"));
}

}  // namespace
}  // namespace tenon::test
