// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "tenon/role/callback.h"

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/optimizer.hpp"

#include "run_session.hpp"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

// Of this program and of the plugins that it loads.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* made = std::malloc(bytes ? bytes : 1)) return made;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* at) noexcept {
  std::free(at);
}
[[gnu::noinline]] void operator delete(void* at, size_t) noexcept {
  std::free(at);
}

namespace tenon::test {
namespace {

uint64_t allocations_so_far() {
  return allocations;
}

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

TEST_F(RunFolder, WithFewerEpochsThanWereBegunTheOneThatItIsInIsEnded) {
  ASSERT_THAT(interrupted_after(14), HasSubstr("epoch 3"));  // an epoch has 5 batches
  options_["resume"] = true;
  options_["epochs"] = 1;
  auto resumed = train(model_, rows(), options_);
  ASSERT_TRUE(resumed.ok()) << text_of(resumed.status());
  EXPECT_EQ(report_["history"].size(), 3u);
  EXPECT_EQ(report_["steps"], 15);
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
  other["seed"] = 4;
  EXPECT_THAT(failure(model_, rows(), other),
              HasSubstr("option seed: the run began with 0, got 4"));
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

// Gradient descent that counts its updates in a state of 32 bits without a sign.
tn_status* counted_descent(void*, tn_edit* raw, const tn_update* given, tn_value_id* out) {
  return guard([&]() -> Status {
    EditView edit{raw};
    Builder b(edit);
    TN_TRY(count, Slot::open(edit, "updates", Type(TN_U32, {})));
    TN_TRY(one, edit.constant<uint32_t>(TN_U32, {}, {1}));
    Value counted = b.add(count.before, one), rate = edit.value(given->rate);
    for (uint64_t i = 0; i < given->n_parameters; ++i) {
      const tn_parameter& of = *given->parameters[i];
      out[i] = b.sub(edit.value(of.value), b.mul(edit.value(of.gradient), rate)).id;
    }
    TN_CHECK(b.status());
    return count.close(edit, counted);
  });
}

TEST_F(RunFolder, AStateOfUnsignedIntegersGoesOn) {
  static const tn_optimizer table{sizeof table, 1, counted_descent};
  tn_component_ref* raw = nullptr;
  ASSERT_EQ(
      text_of(Status(services.component->lend(ctx_, str("tenon.optimizer/1"), str("test.counted"),
                                              &table, nullptr, nullptr, &raw))),
      "");
  lent_["optimizer"] = std::move(*Component::share(raw, "tenon.optimizer/1"));
  services.component->release(raw);
  options_.erase("optimizer");
  for (uint32_t epochs : {1, 3}) {
    options_["epochs"] = epochs;
    options_["resume"] = epochs > 1;

    ASSERT_EQ(failure(model_, rows(), options_), "");

    std::string bytes = read(checkpoint());
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    json state = json::parse(bytes.substr(8, length))["updates"];
    EXPECT_EQ(state["dtype"], "U32");
    uint32_t count = 0;
    std::memcpy(&count, &bytes[8 + length + state["data_offsets"][0].get<uint64_t>()],
                sizeof count);
    EXPECT_EQ(count, 5 * epochs);
  }
}

// Version 2 had the history in the checkpoint.
TEST_F(RunFolder, TheVersionBeforeIsRead) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  json history = report_["history"];
  std::string bytes = read(checkpoint());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  json header = json::parse(bytes.substr(8, length));
  json run = json::parse(header["__metadata__"]["run"].get<std::string>());
  run["position"]["history"] = history;
  header["__metadata__"]["run"] = run.dump();
  header["__metadata__"]["tenon.checkpoint"] = "2";
  std::string text = header.dump();
  uint64_t longer = text.size();
  bytes.replace(0, 8 + length, std::string(reinterpret_cast<char*>(&longer), 8) + text);
  std::ofstream(checkpoint(), std::ios::binary) << bytes;
  std::filesystem::remove(run_file("history.jsonl"));
  options_["resume"] = true;

  ASSERT_EQ(failure(model_, rows(), options_), "");

  EXPECT_EQ(report_["history"], history);
  EXPECT_EQ(history.size(), 4u);
}

// What a process that is killed leaves: a record that no checkpoint counts, and half of one.
TEST_F(RunFolder, RecordsThatNoCheckpointCountsAreDropped) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  json history = report_["history"];
  std::string whole = read(run_file("history.jsonl"));
  std::ofstream(run_file("history.jsonl"), std::ios::app) << R"({"epoch":5,"loss":1})"
                                                          << "\n{\"epoch\":6,";
  options_["resume"] = true;

  ASSERT_EQ(failure(model_, rows(), options_), "");

  EXPECT_EQ(report_["history"], history);
  EXPECT_EQ(read(run_file("history.jsonl")), whole);
}

TEST_F(RunFolder, TwoTrainingsInOneAreRefused) {
  int other = ::open(run().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_LT(other, 0);
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  other = ::open(run().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);  // as a live training has it

  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("got one with a live training"));
  options_["resume"] = true;
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("got one with a live training"));

  ::close(other);
  EXPECT_EQ(failure(model_, rows(), options_), "") << "the lock goes with whoever held it";
}

// Each epoch allocates and writes what the ones before did, whatever its number.
TEST_F(RunFolder, ALateEpochIsNoMoreWorkThanAnEarlyOne) {
  struct Epochs {
    std::vector<uint64_t> allocations, written;
    static tn_status* report(void* self, tn_str, const tn_graph*, int32_t*) {
      auto& epochs = *static_cast<Epochs*>(self);
      std::string key;
      uint64_t bytes = 0;
      std::ifstream io("/proc/self/io");
      while (io >> key >> bytes && key != "wchar:") {
      }
      epochs.allocations.push_back(allocations_so_far());
      epochs.written.push_back(bytes);
      return nullptr;
    }
  };
  for (bool kept : {true, false}) {
    Epochs epochs;
    const tn_callback table{sizeof(tn_callback), 1, nullptr, Epochs::report};
    tn_component_ref* raw = nullptr;
    ASSERT_EQ(
        text_of(Status(services.component->lend(ctx_, str("tenon.callback/1"), str("test.work"),
                                                &table, &epochs, nullptr, &raw))),
        "");
    lent_["callbacks"] = std::move(*Component::share(raw, "tenon.callback/1"));
    services.component->release(raw);
    json options{{"epochs", 130}, {"batch", 40}};
    if (kept) options["run"] = run();

    ASSERT_EQ(failure(model_, rows(), options), "");

    auto per_epoch = [](const std::vector<uint64_t>& counts, size_t first) {
      return static_cast<double>(counts[first + 20] - counts[first]) / 20;
    };
    double early = per_epoch(epochs.allocations, 10), late = per_epoch(epochs.allocations, 105);
    EXPECT_GT(early, 10) << "they are counted";
    EXPECT_LT(late, early * 1.05 + 5);
    if (kept) {
      EXPECT_LT(per_epoch(epochs.written, 105), per_epoch(epochs.written, 10) * 1.05 + 50);
    }
  }
}

TEST_F(RunFolder, ANewerVersionIsRefused) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  write_with("\"tenon.checkpoint\":\"3\"", "\"tenon.checkpoint\":\"9\"");
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("a checkpoint of version 9, written by Tenon 0.1.0: expected version 3"));
}

TEST_F(RunFolder, AnEntryOfAnotherKindIsRefused) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  write_with(R"("dtype":"F32")", R"("dtype":["F"])");
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("a broken entry"));
}

TEST_F(RunFolder, AnEarlierVersionIsRefused) {
  ASSERT_TRUE(train(model_, rows(), options_).ok());
  options_["resume"] = true;
  write_with("\"tenon.checkpoint\":\"3\"", "\"tenon.checkpoint\":\"1\"");
  write_with("\"tenon\":\"0.1.0\"", "\"other\":\"0.1.0\"");
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("a checkpoint of version 1, written by an earlier build of Tenon: expected "
                        "version 3"));
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
  EXPECT_THAT(failure(model_, rows(), options_),
              HasSubstr("option resume: expected run beside it"));
}

}  // namespace
}  // namespace tenon::test
