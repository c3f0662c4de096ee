// SPDX-License-Identifier: Apache-2.0
// What a training run notifies its callbacks of, and what they can do to it.
#include "tenon/role/callback.h"

#include "training_session.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;

// Writes down what it is notified of; ends the run, or fails, at a step or epoch.
struct Listener {
  std::vector<tn_progress_point> points = {};
  std::vector<json> records = {};
  std::vector<float> last_weights = {};  // of "w", as the last epoch saw them
  uint64_t stops_at_step = 0, fails_at_step = 0, stops_at_epoch = 0, fails_at_epoch = 0;

  static tn_status* step(void* self, const tn_progress_point* at, int32_t* out_stop) {
    auto& listener = *static_cast<Listener*>(self);
    listener.points.push_back(*at);
    *out_stop = at->step == listener.stops_at_step;
    return at->step == listener.fails_at_step ? failed() : nullptr;
  }
  static tn_status* epoch(void* self, tn_str record, const tn_graph* model, int32_t* out_stop) {
    auto& listener = *static_cast<Listener*>(self);
    listener.records.push_back(json::parse(view(record)));
    Tensor w = Graph{model}.find("w").constant();
    const auto* data = w.data<float>();
    listener.last_weights.assign(data, data + element_count(w.dl()));
    uint64_t number = listener.records.back()["epoch"];
    *out_stop = number == listener.stops_at_epoch;
    return number == listener.fails_at_epoch ? failed() : nullptr;
  }
  static tn_status* failed() { return Status(TN_UNAVAILABLE, "nobody listens").release(); }
};

class Callbacks : public TrainingTest {
 protected:
  void SetUp() override {
    TrainingTest::SetUp();
    model_ = parse(kLinear);
    options_ = {{"epochs", 3}, {"batch", 10}, {"rate", 0.5}};  // 4 steps an epoch
  }
  void TearDown() override {
    lent_.clear();
    model_ = {};
  }
  Component rows() { return data(table(40)); }
  std::string run() { return (folder_ / "run").string(); }
  Component lend(Listener& listener, const char* id, const tn_callback& table = kAll) {
    tn_component_ref* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.component->lend(ctx_, str("tenon.callback/1"), str(id),
                                                      &table, &listener, nullptr, &raw))),
              "");
    Result<Component> shared = Component::share(raw, "tenon.callback/1");
    services.component->release(raw);
    return std::move(*shared);
  }
  void listen(Listener& listener) { lent_["callbacks"] = lend(listener, "test.listener"); }

  static constexpr tn_callback kAll{sizeof(tn_callback), 1, Listener::step, Listener::epoch};
  static constexpr tn_callback kEpochs{sizeof(tn_callback), 1, nullptr, Listener::epoch};
  OwnedGraph model_;
  json options_;
};

TEST_F(Callbacks, AreNotifiedOfEachStepAndEpoch) {
  Listener all;
  listen(all);
  options_["validation"] = 0.5;
  options_["rate"] = "scheduler.cosine";
  auto trained = train(model_, rows(), options_);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  ASSERT_EQ(all.points.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(all.points[i].struct_size, sizeof(tn_progress_point));
    EXPECT_EQ(all.points[i].step, i + 1);
    EXPECT_EQ(all.points[i].epoch, i / 2 + 1);
    EXPECT_EQ(all.points[i].skipped, 0u);
  }
  const json& history = report_["history"];
  EXPECT_EQ(json(all.records), history);
  EXPECT_EQ(all.records[2]["rate"], all.points[5].rate);
  EXPECT_DOUBLE_EQ(all.records[0]["loss"], (all.points[0].loss + all.points[1].loss) / 2);
  EXPECT_TRUE(history[0].contains("validation_loss"));
  EXPECT_EQ(all.last_weights, weight(*trained, "w"));
  EXPECT_TRUE(report_["stopped_by"].is_null());
}

TEST_F(Callbacks, DoNotChangeTheRun) {
  auto alone = train(model_, rows(), options_);
  Listener all;
  listen(all);
  auto report = train(model_, rows(), options_);
  ASSERT_TRUE(alone.ok() && report.ok());
  EXPECT_EQ(weight(*report, "w"), weight(*alone, "w"));
}

TEST_F(Callbacks, AStopAfterAStepEndsTheEpochThere) {
  Listener all{.stops_at_step = 6};
  listen(all);
  options_["validation"] = 0.25;
  options_["epochs"] = 9;
  options_["run"] = run();
  options_["batch"] = 8;  // 4 steps an epoch
  auto trained = train(model_, rows(), options_);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(report_["steps"], 6);
  EXPECT_EQ(report_["epochs"], 2);
  EXPECT_EQ(report_["stopped_by"], "test.listener");
  EXPECT_EQ(report_["stopped_early"], false);
  ASSERT_EQ(report_["history"].size(), 2u);
  EXPECT_FALSE(report_["history"][0].contains("stopped_by"));
  EXPECT_EQ(report_["history"][1]["stopped_by"], "test.listener");
  EXPECT_TRUE(report_["history"][1].contains("validation_loss")) << "it is judged as it is";
  EXPECT_EQ(all.records.size(), 2u);
  EXPECT_EQ(all.last_weights, weight(*trained, "w"));

  options_["resume"] = true;  // the run is at its end, as after early stopping
  auto again = train(model_, rows(), options_);
  ASSERT_TRUE(again.ok()) << text_of(again.status());
  EXPECT_EQ(all.points.size(), 6u);
  EXPECT_EQ(report_["stopped_by"], "test.listener");
  EXPECT_EQ(weight(*again, "w"), weight(*trained, "w"));
}

TEST_F(Callbacks, AStopAfterAnEpochIsTheLast) {
  Listener all{.stops_at_epoch = 2};
  listen(all);
  auto trained = train(model_, rows(), options_);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(report_["steps"], 8);
  EXPECT_EQ(report_["history"][1]["stopped_by"], "test.listener");
  options_["epochs"] = 2;
  lent_.clear();
  auto two = train(model_, rows(), options_);
  ASSERT_TRUE(two.ok()) << text_of(two.status());
  EXPECT_EQ(weight(*trained, "w"), weight(*two, "w"));
}

TEST_F(Callbacks, AFailureNamesItAndTheStep) {
  Listener all{.fails_at_step = 5};
  listen(all);
  auto failed = train(model_, rows(), options_);
  ASSERT_FALSE(failed.ok());
  Status why = std::move(failed).status();
  EXPECT_EQ(why.code(), TN_UNAVAILABLE);
  std::string text = text_of(std::move(why));
  EXPECT_THAT(text, HasSubstr("stopped after step 5 (epoch 2)"));
  EXPECT_THAT(text, HasSubstr("callback test.listener"));
  EXPECT_THAT(text, HasSubstr("nobody listens"));
  EXPECT_THAT(text, HasSubstr("give option run, a folder, to be able to go on"));
}

TEST_F(Callbacks, ARunGoesOnBehindAFailure) {
  auto whole = train(model_, rows(), options_);
  ASSERT_TRUE(whole.ok()) << text_of(whole.status());
  Listener all{.fails_at_step = 5, .fails_at_epoch = 3};
  listen(all);
  options_["run"] = run();
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("go on with --resume " + run()));
  options_["resume"] = true;
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("stopped after step 12 (epoch 3)"));
  all.fails_at_epoch = 0;
  auto trained = train(model_, rows(), options_);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(weight(*trained, "w"), weight(*whole, "w"));
  EXPECT_EQ(all.points.size(), 12u) << "a step that was done is not reported again";
  std::vector<uint64_t> epochs;
  for (const json& record : all.records)
    epochs.push_back(record["epoch"]);
  EXPECT_THAT(epochs, ElementsAre(1, 2, 3, 3))
      << "an epoch whose callback failed is reported again";
  EXPECT_EQ(report_["history"].size(), 3u);
}

// The judgement of an epoch counts once, however often it is made.
TEST_F(Callbacks, AFailureAfterAnEpochKeepsPatience) {
  options_ = {{"epochs", 9},        {"batch", 10},   {"rate", 0},
              {"validation", 0.25}, {"patience", 3}, {"run", run()}};
  Listener all{.fails_at_epoch = 2};
  listen(all);
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("(epoch 2)"));
  options_["resume"] = true;
  all.fails_at_epoch = 0;
  auto trained = train(model_, rows(), options_);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(report_["epochs"], 4);
  EXPECT_EQ(report_["stopped_early"], true);
}

// Gradients of about 2 overflow float16 under the first loss scales.
TEST_F(Callbacks, SeeThatASkippedStepAdvancesNoSchedule) {
  Listener all;
  listen(all);
  std::string text = "a,b,label\n";
  for (int i = 0; i < 40; ++i)
    text += i % 2 ? "5,-3,1\n" : "-4,2,0\n";
  json options{{"epochs", 4}, {"batch", 10}, {"rate", "scheduler.linear"}, {"precision", "fp16"}};
  auto trained = train(model_, data(write("far.csv", text)), options);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  ASSERT_EQ(all.points.size(), 16u);
  size_t skipped = 0;
  for (size_t i = 0; i + 1 < all.points.size(); ++i) {
    skipped += all.points[i].skipped;
    if (all.points[i].skipped) {
      EXPECT_EQ(all.points[i + 1].rate, all.points[i].rate) << i;
    } else {
      EXPECT_LT(all.points[i + 1].rate, all.points[i].rate) << i;
    }
  }
  EXPECT_GT(skipped, 0u);
  EXPECT_LT(skipped, 15u);
  EXPECT_EQ(all.records.back()["skipped"], skipped + all.points.back().skipped);
}

TEST_F(Callbacks, SeveralAreNotifiedInOrder) {
  Listener first, second{.stops_at_epoch = 1}, third;
  auto both = [&](const Component& a, const Component& b) {
    tn_options* options = nullptr;
    EXPECT_EQ(text_of(Status(services.options->create(ctx_, &options))), "");
    for (const auto& [key, part] : {std::pair{"first", &a}, std::pair{"second", &b}}) {
      tn_any live{TN_ANY_COMPONENT, 0, 1, {.p = part->raw()}};
      EXPECT_EQ(text_of(Status(services.options->set(options, str(key), live))), "");
    }
    tn_component_ref* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.component->create(ctx_, str("tenon.callback/1"),
                                                        str("trainer.both"), options, &raw))),
              "");
    services.options->release(options);
    Result<Component> made = Component::share(raw, "tenon.callback/1");
    services.component->release(raw);
    return std::move(*made);
  };
  Component a = lend(first, "test.first"), b = lend(second, "test.second"),
            c = lend(third, "test.third", kEpochs);
  lent_["callbacks"] = both(a, both(b, c));
  auto trained = train(model_, rows(), options_);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(report_["stopped_by"], "test.second");
  EXPECT_EQ(first.records.size(), 1u);
  EXPECT_EQ(third.records.size(), 1u) << "notified though the second ends the run";
  EXPECT_EQ(first.points.size(), 4u);
  EXPECT_EQ(third.points.size(), 0u) << "it has no step";
  third.fails_at_epoch = 1;
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("callback test.third: nobody listens"));
}

TEST_F(Callbacks, OfAnotherRoleAreRefused) {
  options_["callbacks"] = "trainer.nothing";
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("option callbacks"));
  options_.erase("callbacks");
  lent_["callbacks"] = rows();
  EXPECT_THAT(failure(model_, rows(), options_), HasSubstr("callbacks"));
}

}  // namespace
}  // namespace tenon::test
