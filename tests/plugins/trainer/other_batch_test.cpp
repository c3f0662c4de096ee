// SPDX-License-Identifier: Apache-2.0
// A run that goes on with batches of another size.
#include <cmath>

#include "run_session.hpp"

namespace tenon::test {
namespace {

// 40 samples are trained on, 10 held out. A rate of zero keeps the weights, so that the loss of an
// epoch is the mean over its samples, in any batches, each of them once.
class OtherBatch : public RunFolder {
 protected:
  void SetUp() override {
    RunFolder::SetUp();
    options_["optimizer"] = "sgd";
    options_.erase("patience");
    std::string text(kLinear);
    text.replace(text.find("[0, 0, 0, 0]"), 12, "[1, -2, 3, 0.5]");
    model_ = parse(text);
  }
  // The records of a run that goes on after so many batches of 8, with batches of this size.
  json resumed(int batches, uint64_t batch) {
    EXPECT_THAT(interrupted_after(batches + 1),  // it also counts the beginning
                HasSubstr("stopped after step"));
    json other = options_;
    other["resume"] = true;
    other["batch"] = batch;
    auto trained = train(model_, rows(), other);
    EXPECT_TRUE(trained.ok()) << text_of(trained.status());
    return report_.value("history", json::array());
  }
  json plain(uint64_t batch) {
    json other = options_;
    other.erase("run");
    other["batch"] = batch;
    auto trained = train(model_, rows(), other);
    EXPECT_TRUE(trained.ok()) << text_of(trained.status());
    return report_.value("history", json::array());
  }
};

TEST_F(OtherBatch, SeesEachSampleOfTheEpochOnce) {
  options_["rate"] = 0;
  double loss = plain(8).at(0)["loss"];
  std::vector<std::pair<int, uint64_t>> cases{{3, 16}, {3, 5}, {7, 40}, {5, 3}, {1, 7}};
  for (auto [batches, batch] : cases) {
    std::filesystem::remove_all(run());
    json history = resumed(batches, batch);
    ASSERT_EQ(history.size(), 4u);
    for (const json& record : history)
      EXPECT_NEAR(record["loss"], loss, 1e-6) << batches << " of 8, then " << batch;
  }
}

TEST_F(OtherBatch, IsAsManyStepsAsItsSamplesTake) {
  json history = resumed(3, 16);  // 24 samples, then 16 in one batch, then 16, 16, 8 in each epoch
  EXPECT_EQ(history.at(0)["steps"], 4);
  EXPECT_EQ(history.at(1)["steps"], 7);
  EXPECT_EQ(history.at(3)["steps"], 13);
}

TEST_F(OtherBatch, MayLeaveOutARestThatIsTooSmall) {
  options_["drop_last"] = true;
  json history = resumed(3, 30);  // 16 are left, no batch of 30
  EXPECT_EQ(history.at(0)["steps"], 3);
  EXPECT_EQ(history.at(1)["steps"], 4);
}

TEST_F(OtherBatch, SchedulesAreAsFarAsTheSamples) {
  options_["rate"] = "scheduler.cosine";
  std::vector<double> whole;
  for (const json& record : plain(20))
    whole.push_back(record["rate"]);
  json history = resumed(10, 20);  // after the second epoch
  for (size_t i = 2; i < 4; ++i)
    EXPECT_EQ(history.at(i)["rate"], whole[i]) << "epoch " << i + 1;
}

TEST_F(OtherBatch, GoesOnToTheSameBitsWhenItIsStoppedAgain) {
  ASSERT_THAT(interrupted_after(3), HasSubstr("stopped after step"));
  std::filesystem::copy(run(), run() + "-copy");
  options_["resume"] = true;
  options_["batch"] = 5;
  auto whole = train(model_, rows(), options_);
  ASSERT_TRUE(whole.ok()) << text_of(whole.status());
  double loss = report_["history"][0]["loss"];
  std::filesystem::remove_all(run());
  std::filesystem::rename(run() + "-copy", run());
  ASSERT_THAT(interrupted_after(2), HasSubstr("stopped after step"));
  auto again = train(model_, rows(), options_);
  ASSERT_TRUE(again.ok()) << text_of(again.status());
  EXPECT_EQ(weight(*again, "w"), weight(*whole, "w"));
  EXPECT_EQ(report_["history"][0]["loss"], loss);
}

TEST_F(OtherBatch, KeepsTheRateOfEachSample) {
  options_["rate_batch"] = 8;
  json history = resumed(5, 16);
  EXPECT_DOUBLE_EQ(history.at(0)["rate"], 0.1);
  EXPECT_DOUBLE_EQ(history.at(3)["rate"], 0.2);
}

TEST_F(OtherBatch, RewindRefusesIt) {
  options_["keep_steps"] = {2};
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  json other = options_;
  other["rewind"] = run() + "/step_2.safetensors";
  other["run"] = run() + "-other";
  other["batch"] = 4;
  EXPECT_THAT(failure(model_, rows(), other),
              HasSubstr("option batch: the run began with 8, got 4"));
}

}  // namespace
}  // namespace tenon::test
