// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>

#include "training_session.hpp"

namespace tenon::test {
namespace {

class RunFolder : public TrainingTest {
 protected:
  void SetUp() override {
    TrainingTest::SetUp();
    model_ = parse(kLinear);
    options_ = {{"epochs", 4},       {"batch", 8},    {"optimizer", "adamw"}, {"rate", 0.1},
                {"validation", 0.2}, {"patience", 9}, {"run", run()}};
  }
  void TearDown() override {
    lent_.clear();
    model_ = {};
  }
  std::string run() { return (folder_ / "run").string(); }
  std::string checkpoint() { return run() + "/checkpoint.safetensors"; }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Trains until so many batches are done, then asks to stop. The message.
  std::string interrupted_after(int batches) {
    if (tn_status* failed = tenon_cancel_new(session_, &cancel_)) return text_of(Status(failed));
    Watch watch{cancel_, batches};
    tenon_on_progress(session_, seen, &watch);
    std::string text = failure(model_, rows(), options_);
    tenon_on_progress(session_, nullptr, nullptr);
    tenon_cancel_free(cancel_);
    cancel_ = nullptr;
    return text;
  }
  Component rows() { return data(table(50)); }
  // The checkpoint with other text of the same length in it.
  void write_with(const std::string& old, const std::string& text) {
    std::string bytes = read(checkpoint());
    size_t at = bytes.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    bytes.replace(at, text.size(), text);
    std::ofstream(checkpoint(), std::ios::binary) << bytes;
  }

  OwnedGraph model_;
  json options_;

 private:
  struct Watch {
    tn_cancel* cancel;
    int left;
  };
  static void seen(void* arg, uint64_t, tn_str, uint64_t, uint64_t) {
    auto* watch = static_cast<Watch*>(arg);
    if (watch->left-- <= 1) tenon_cancel_request(watch->cancel);
  }
};

TEST_F(RunFolder, AnInterruptedRunGoesOnToTheSameBits) {
  json plain = options_;
  plain.erase("run");
  auto whole = train(model_, rows(), plain);
  ASSERT_TRUE(whole.ok()) << text_of(whole.status());
  std::vector<json> losses;
  for (const json& record : report_["history"])
    losses.push_back(record["loss"]);
  for (int batches : {3, 5, 7, 2, 4}) {  // an epoch has 5 batches
    std::string text = interrupted_after(batches);
    ASSERT_THAT(text, HasSubstr("stopped after step"));
    EXPECT_THAT(text, HasSubstr("go on with --resume " + run()));
    options_["resume"] = true;
  }
  auto resumed = train(model_, rows(), options_);
  ASSERT_TRUE(resumed.ok()) << text_of(resumed.status());
  EXPECT_EQ(weight(*resumed, "w"), weight(*whole, "w"));
  EXPECT_EQ(weight(*resumed, "b"), weight(*whole, "b"));
  ASSERT_EQ(report_["history"].size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_EQ(report_["history"][i]["loss"], losses[i]) << "epoch " << i + 1;
  std::string history = read(run() + "/history.jsonl");
  EXPECT_EQ(std::count(history.begin(), history.end(), '\n'), 4);
}

TEST_F(RunFolder, AFinishedRunGivesItsWeightsAgain) {
  auto first = train(model_, rows(), options_);
  ASSERT_TRUE(first.ok()) << text_of(first.status());
  options_["resume"] = true;
  auto again = train(model_, rows(), options_);
  ASSERT_TRUE(again.ok()) << text_of(again.status());
  EXPECT_EQ(weight(*again, "w"), weight(*first, "w"));
  options_["epochs"] = 5;
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  EXPECT_EQ(report_["history"].size(), 5u) << "more epochs go on from there";
}

TEST_F(RunFolder, ARunIsNotOverwritten) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("holds a run already"));
}

TEST_F(RunFolder, AnotherModelOrOptionIsRefused) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  std::string text(kLinear);
  text.replace(text.find("= Add"), 5, "= Sub");
  EXPECT_THAT(failure(parse(text), rows(), options_),
              HasSubstr("the checkpoint is of another model"));
  json other = options_;
  other["batch"] = 4;
  EXPECT_THAT(failure(model_, rows(), other),
              HasSubstr("option batch: the run began with 8, got 4"));
  other = options_;
  other["optimizer"] = "sgd";
  EXPECT_THAT(failure(model_, rows(), other), HasSubstr("option optimizer: the run began with"));
  EXPECT_THAT(failure(model_, data(table(30)), options_), HasSubstr("option samples"));
}

TEST_F(RunFolder, AnotherRateIsRefused) {
  options_["rate"] = "scheduler.cosine";
  ASSERT_TRUE(train(model_, rows(), options_).ok());  // 20 steps
  options_["resume"] = true;
  options_["epochs"] = 6;
  EXPECT_EQ(failure(model_, rows(), options_), "") << "for more epochs the schedule gets longer";
  options_["epochs"] = 7;
  options_["rate"] = "scheduler.linear";
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("option rate: step 2 of 30: the run began with 0.99"));
  options_["rate"] = 0.25;
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("option rate: step 1 of 30: the run began with 1.0, got 0.25"));
}

TEST_F(RunFolder, AnotherOptionOfLossOrOptimizerIsRefused) {
  auto given = [&](const char* role, const char* id, const json& options) {
    auto made = make(role, id, options);
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return std::move(*made);
  };
  options_.erase("optimizer");
  auto begin = [&] {
    lent_.clear();
    lent_.emplace("loss", given("tenon.loss/1", "trainer.cross_entropy", {{"label_smoothing", 0}}));
    lent_.emplace("optimizer", given("tenon.optimizer/1", "trainer.adamw", {{"beta2", 0.99}}));
  };
  begin();
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  options_["epochs"] = 5;
  lent_.at("optimizer") = given("tenon.optimizer/1", "trainer.adamw", {{"beta2", 0.5}});
  std::string text = failure(model_, rows(), options_);
  EXPECT_THAT(text, HasSubstr("options of trainer.cross_entropy or trainer.adamw: the run began"));
  EXPECT_THAT(text, testing::ContainsRegex("a step that has .*0\\.99.*, got .*0\\.5"));
  begin();
  lent_.at("optimizer") =
      given("tenon.optimizer/1", "trainer.adamw", {{"beta2", 0.99}, {"no_decay", "b"}});
  EXPECT_THAT(failure(model_, rows(), options_),
              AllOf(HasSubstr("or trainer.adamw: the run began"),
                    HasSubstr("another build of Tenon wrote the checkpoint")));
  begin();
  lent_.at("loss") = given("tenon.loss/1", "trainer.cross_entropy", {{"label_smoothing", 0.1}});
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("options of trainer.cross_entropy or"));
  begin();
  EXPECT_EQ(failure(model_, rows(), options_), "") << "the same options go on";
}

TEST_F(RunFolder, ANewerVersionIsRefused) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  write_with("\"tenon.checkpoint\":\"2\"", "\"tenon.checkpoint\":\"9\"");
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("a checkpoint of version 9, written by Tenon 0.1.0: expected version 2"));
}

TEST_F(RunFolder, AnEarlierVersionIsRefused) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  write_with("\"tenon.checkpoint\":\"2\"", "\"tenon.checkpoint\":\"1\"");
  write_with("\"tenon\":\"0.1.0\"", "\"other\":\"0.1.0\"");
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("a checkpoint of version 1, written by an earlier build of Tenon: expected "
                        "version 2"));
  write_with("\"tenon.checkpoint\"", "\"elsewhere.checks\"");
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("expected a checkpoint of trainer.train, got another file"));
}

// A version may write other operators for the same options.
TEST_F(RunFolder, TheVersionThatWroteAnotherStepIsNamed) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  write_with("\"tenon\":\"0.1.0\"", "\"tenon\":\"0.0.9\"");
  auto loss = make("tenon.loss/1", "trainer.cross_entropy", {{"label_smoothing", 0.1}});
  ASSERT_TRUE(loss.ok()) << text_of(loss.status());
  lent_.emplace("loss", std::move(*loss));
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("where these are as they were, Tenon 0.0.9 wrote the checkpoint: go on "
                        "with that, or give another folder"));
  lent_.clear();
  EXPECT_EQ(failure(model_, rows(), options_), "") << "the same step goes on";
}

TEST_F(RunFolder, ABrokenFileIsNamed) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  std::string bytes = read(checkpoint());
  for (size_t size : {size_t{0}, size_t{5}, size_t{40}, bytes.size() / 2, bytes.size() - 1}) {
    std::ofstream(checkpoint(), std::ios::binary) << bytes.substr(0, size);
    EXPECT_THAT(failure(model_, rows(), options_), HasSubstr(checkpoint())) << size;
  }
}

TEST_F(RunFolder, ABadStepLeavesTheLastGoodCheckpoint) {
  options_["rate"] = 3e38;
  options_["optimizer"] = "sgd";
  options_["epochs"] = 50;
  options_["checkpoint_steps"] = 1;
  std::string text = failure(model_, rows(), options_);
  EXPECT_THAT(text, HasSubstr("the last good checkpoint, of step "));
  EXPECT_THAT(text, HasSubstr(checkpoint()));
  // It can be read, and its weights are finite: it fails at the same step again.
  options_["resume"] = true;
  EXPECT_EQ(failure(model_, rows(), options_), text);
}

TEST_F(RunFolder, ResumeNeedsAFolder) {
  options_.erase("run");
  options_["resume"] = true;
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("option resume: expected option run"));
}

}  // namespace
}  // namespace tenon::test
