// SPDX-License-Identifier: Apache-2.0
// Checkpoints in several files, and those of the newest epochs.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "training_session.hpp"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

class Shards : public TrainingTest {
 protected:
  void SetUp() override {
    TrainingTest::SetUp();
    model_ = parse(kLinear);
    options_ = {{"epochs", 3}, {"batch", 8},        {"optimizer", "adamw"},
                {"rate", 0.1}, {"shard_bytes", 20}, {"run", (folder_ / "run").string()}};
  }
  void TearDown() override {
    lent_.clear();
    model_ = {};
  }
  Component rows() { return data(table(32)); }
  std::vector<std::string> files() {
    std::vector<std::string> out;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "run"))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
  std::vector<float> trained() {
    auto made = train(model_, rows(), options_);
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return made.ok() ? weight(*made, "w") : std::vector<float>();
  }

  OwnedGraph model_;
  json options_;
};

TEST_F(Shards, ARunGoesOnFromSeveralFilesToTheSameBits) {
  json whole = options_;
  for (const char* name : {"run", "shard_bytes"})
    whole.erase(name);
  whole["epochs"] = 6;
  auto plain = train(model_, rows(), whole);
  ASSERT_TRUE(plain.ok()) << text_of(plain.status());
  trained();
  size_t n_shards = 0;
  for (const std::string& name : files()) {
    if (!name.starts_with("checkpoint.") || name == "checkpoint.safetensors") continue;
    ++n_shards;
    EXPECT_LT(fs::file_size(folder_ / "run" / name), 600u) << name;
  }
  EXPECT_GE(n_shards, 4u);
  options_["resume"] = true;
  options_["epochs"] = 6;
  options_["rate"] = 0.1;
  EXPECT_EQ(trained(), weight(*plain, "w"));
}

TEST_F(Shards, TheEarlierOnesGoWhenTheNewOnesAreListed) {
  trained();
  std::vector<std::string> names = files();
  bool has_a = std::any_of(names.begin(), names.end(),
                           [](const std::string& n) { return n.starts_with("checkpoint.a-"); });
  bool has_b = std::any_of(names.begin(), names.end(),
                           [](const std::string& n) { return n.starts_with("checkpoint.b-"); });
  EXPECT_NE(has_a, has_b);
}

// A process that was killed while it wrote: new shards without a list, and one that is half there.
TEST_F(Shards, WhatAKilledProcessLeftIsNoHarm) {
  std::vector<float> wanted = trained();
  std::vector<std::string> names = files();
  std::string other =
      std::find(names.begin(), names.end(), "checkpoint.a-1.safetensors") == names.end()
          ? "checkpoint.a-"
          : "checkpoint.b-";
  std::ofstream(folder_ / "run" / (other + "1.safetensors")) << "half";
  std::ofstream(folder_ / "run" / ("." + other + "2.safetensors.x.part")) << "half";
  options_["resume"] = true;
  EXPECT_EQ(trained(), wanted);
  EXPECT_FALSE(fs::exists(folder_ / "run" / ("." + other + "2.safetensors.x.part")));
}

TEST_F(Shards, AMissingOrForeignShardIsNamed) {
  trained();
  for (const std::string& name : files())
    if (name.ends_with("-2.safetensors")) fs::remove(folder_ / "run" / name);
  options_["resume"] = true;
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("-2.safetensors"));
}

TEST_F(Shards, OneFileAgainWhereNoneIsAsked) {
  trained();
  options_["resume"] = true;
  options_["shard_bytes"] = 0;
  options_["epochs"] = 4;
  trained();
  EXPECT_THAT(files(), testing::ElementsAre("checkpoint.safetensors", "history.jsonl"));
}

TEST_F(Shards, TheNewestEpochsStay) {
  options_["keep_last"] = 2;
  options_["shard_bytes"] = 0;
  options_["epochs"] = 5;
  std::vector<float> wanted = trained();
  EXPECT_THAT(files(), testing::ElementsAre("checkpoint.safetensors", "epoch_4.safetensors",
                                            "epoch_5.safetensors", "history.jsonl"));
  json longer = options_;
  longer["run"] = (folder_ / "other").string();
  longer["rewind"] = (folder_ / "run" / "epoch_4.safetensors").string();
  std::string text(kLinear);
  text.replace(text.find("[0, 0, 0, 0]"), 12, "[1, 2, 3, 4]");  // zeros might be pruned weights
  auto again = train(parse(text), rows(), longer);
  ASSERT_TRUE(again.ok()) << text_of(again.status());
  EXPECT_EQ(weight(*again, "w"), wanted);
}

TEST_F(Shards, KeptOnesAskForAFolder) {
  options_.erase("run");
  options_["keep_last"] = 2;
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("option keep_last: expected run beside it"));
}

}  // namespace
}  // namespace tenon::test
