// SPDX-License-Identifier: Apache-2.0
// What happens between gradients and optimizer, and after it: clipping, windows of batches,
// averages of weights.
#include <cmath>
#include <filesystem>

#include "tenon/role/loss.h"

#include "tenon/sdk/build.hpp"

#include "training_session.hpp"

namespace tenon::test {
namespace {

using testing::FloatNear;
using testing::Pointwise;

class Update : public TrainingTest {
 protected:
  // w and b after training, in one list.
  std::vector<float> weights(const Component& rows, const json& options) {
    auto trained = train(parse(kLinear), rows, options);
    EXPECT_TRUE(trained.ok()) << text_of(trained.status());
    if (!trained.ok()) return {};
    std::vector<float> out = weight(*trained, "w"), more = weight(*trained, "b");
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
};

constexpr std::string_view kOneLogit = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 1] = [0, 0]
  %y: f32[n, 1] = MatMul(%x, %w) @ny
  output y = %y
})";

json plan(int batch, int accumulate, const char* optimizer = "adam") {
  return {{"batch", batch}, {"accumulate", accumulate}, {"shuffle", false},
          {"rate", 0.125},  {"optimizer", optimizer},   {"epochs", 2}};
}

TEST_F(Update, SeveralBatchesAreAsOneBig) {
  Component rows = data(table(32));
  for (const char* optimizer : {"sgd", "adam", "lamb"}) {
    std::vector<float> whole = weights(rows, plan(32, 1, optimizer));
    EXPECT_EQ(report_["steps"], 2);
    EXPECT_THAT(weights(rows, plan(8, 4, optimizer)), Pointwise(FloatNear(2e-6f), whole));
    EXPECT_EQ(report_["steps"], 8);
  }
}

// 27 + 5: the mean of the means would count the five samples of the last batch more than others.
TEST_F(Update, UnevenBatchesCountBySamples) {
  Component rows = data(table(32));
  std::vector<float> whole = weights(rows, plan(32, 1)), uneven = weights(rows, plan(27, 2));
  EXPECT_EQ(report_["steps"], 4);
  EXPECT_THAT(uneven, Pointwise(FloatNear(2e-6f), whole));
  // A window at the end of an epoch that has fewer batches than others is applied as well.
  EXPECT_THAT(weights(rows, plan(9, 100)), Pointwise(FloatNear(2e-6f), whole));
}

// The schedule counts updates, not batches: the second of two updates is its last step.
TEST_F(Update, ASchedulesStepsAreUpdates) {
  Component rows = data(table(16));
  auto halving = [&]() {
    return std::move(*make("tenon.schedule/1", "scheduler.linear", {{"from", 0.5}, {"to", 0}}));
  };
  lent_["rate"] = halving();
  json options = plan(16, 1);
  options.erase("rate");
  std::vector<float> whole = weights(rows, options);
  options["batch"] = 4;
  options["accumulate"] = 4;
  EXPECT_THAT(weights(rows, options), Pointwise(FloatNear(2e-6f), whole));
  EXPECT_EQ(report_["history"].back()["rate"], 0.25);
}

TEST_F(Update, IgnoredLabelsWeighNothingInAWindow) {
  std::string text = "a,b,label\n";
  const int labels[] = {0, 9, 9, 9, 1, 0, 9, 1};  // 1 of the first four counts, then 3
  for (int i = 0; i < 8; ++i)
    text += cat(i * 3 % 7, ",", i * 5 % 8, ",", labels[i], "\n");
  Component rows = data(write("some.csv", text));
  auto ignoring = [&] {
    lent_["loss"] =
        std::move(*make("tenon.loss/1", "trainer.cross_entropy", {{"ignore_index", 9}}));
  };
  ignoring();
  std::vector<float> whole = weights(rows, plan(8, 1));
  EXPECT_THAT(weights(rows, plan(4, 2)), Pointwise(FloatNear(2e-6f), whole));
  EXPECT_THAT(weights(rows, plan(3, 3)), Pointwise(FloatNear(2e-6f), whole));
}

TEST_F(Update, AWindowOfNothingButIgnoredLabelsIsNoStep) {
  lent_["loss"] = std::move(*make("tenon.loss/1", "trainer.cross_entropy", {{"ignore_index", 9}}));
  Component rows = data(write("none.csv", "a,b,label\n1,2,9\n3,4,9\n5,6,9\n7,8,9\n"));
  json options = plan(2, 2, "adamw");
  EXPECT_THAT(weights(rows, options), testing::Each(0));
}

TEST_F(Update, WeightedClassesWeighAsMuchInAWindow) {
  Component rows = data(table(16));
  auto weighted = [&] {
    lent_["loss"] = std::move(*make("tenon.loss/1", "trainer.cross_entropy", {{"weight", {1, 4}}}));
  };
  weighted();
  std::vector<float> whole = weights(rows, plan(16, 1));
  EXPECT_THAT(whole, testing::Contains(testing::Ne(0)));
  EXPECT_THAT(weights(rows, plan(5, 4)), Pointwise(FloatNear(2e-6f), whole));
}

// The losses of an epoch are means over what counts, however it is cut into batches.
TEST_F(Update, LossesOfAnEpochDoNotDependOnTheBatch) {
  constexpr std::string_view kTilted = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 2] = [0.5, -0.25, 1, -2]
  %y: f32[n, 2] = MatMul(%x, %w) @ny
  output y = %y
})";
  std::string text = "a,b,label\n";
  for (int i = 0; i < 24; ++i)
    text += cat(i * 3 % 7, ",", i * 5 % 8, ",", i % 12 < 7 ? 9 : i % 2, "\n");
  Component rows = data(write("some.csv", text));
  for (const json& loss :
       {json{{"ignore_index", 9}}, json{{"ignore_index", 9}, {"weight", {1, 5}}}}) {
    std::vector<double> losses, judged;
    for (int batch : {12, 5, 1}) {
      lent_["loss"] = std::move(*make("tenon.loss/1", "trainer.cross_entropy", loss));
      auto made =
          train(parse(kTilted), rows,
                {{"batch", batch}, {"rate", 1e-12}, {"shuffle", false}, {"validation", 0.5}});
      ASSERT_TRUE(made.ok()) << text_of(made.status());
      losses.push_back(report_["history"][0]["loss"]);
      judged.push_back(report_["history"][0]["validation_loss"]);
    }
    EXPECT_THAT(losses, testing::Each(testing::DoubleNear(losses[0], 1e-6)));
    EXPECT_THAT(judged, testing::Each(testing::DoubleNear(judged[0], 1e-6)));
  }
}

// Two positives in the first four, none behind them.
TEST_F(Update, FocalDividesByThePositivesOfAWindow) {
  std::string text = "a,b,label\n";
  for (int i = 0; i < 8; ++i)
    text += cat(i * 3 % 7, ",", i * 5 % 8, ",", i == 1 || i == 2 ? "1" : "0", "\n");
  Component rows = data(write("few.csv", text));
  auto trained = [&](int batch, int accumulate) {
    lent_["loss"] = std::move(*make("tenon.loss/1", "trainer.focal", {{"divide_by", "positives"}}));
    json options = plan(batch, accumulate);
    options["epochs"] = 1;
    auto made = train(parse(kOneLogit), rows, options);
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return made.ok() ? weight(*made, "w") : std::vector<float>();
  };
  std::vector<float> whole = trained(8, 1);
  ASSERT_THAT(whole, testing::Each(testing::Ne(0)));
  EXPECT_THAT(trained(4, 2), Pointwise(FloatNear(2e-6f), whole));
  EXPECT_THAT(trained(3, 3), Pointwise(FloatNear(2e-6f), whole));
}

TEST_F(Update, HalfPrecisionAccumulatesToo) {
  Component rows = data(table(32));
  json options = plan(8, 4);
  std::vector<float> single = weights(rows, options);
  options["precision"] = "fp16";
  std::vector<float> half = weights(rows, options);
  EXPECT_EQ(report_["history"].back()["skipped"], 0);
  EXPECT_THAT(half, Pointwise(FloatNear(0.02f), single));
}

// All samples in each batch, and no weights to begin with: a run of which some steps were skipped
// is where a shorter one in float32 is, if an optimizer's count of steps was skipped as well.
TEST_F(Update, ASkippedStepIsNotCountedByTheOptimizer) {
  std::string text = "a,b,label\n";
  for (int i = 0; i < 8; ++i)
    text += i % 2 ? "5,-3,1\n" : "-4,2,0\n";
  Component rows = data(write("far.csv", text));
  for (int accumulate : {1, 2}) {
    json options = plan(8 / accumulate, accumulate, "adamw");
    options["epochs"] = 6;
    options["precision"] = "fp16";
    std::vector<float> half = weights(rows, options);
    auto skipped = report_["history"].back()["skipped"].get<int>();
    ASSERT_GT(skipped, 0);
    ASSERT_LT(skipped, 6);
    options["precision"] = "fp32";
    options["epochs"] = 6 - skipped;
    EXPECT_THAT(half, Pointwise(FloatNear(2e-3f), weights(rows, options)));
  }
}

// Reference by hand: plain gradient descent, so the weights of each step are those of a run that
// is as long; the average of them is d a + (1 - d) w from a = the first weights, which are 0.
TEST_F(Update, TheAverageOfWeightsIsGivenBack) {
  Component rows = data(table(16));
  json options = plan(16, 1, "sgd");
  std::vector<float> expected(6, 0);
  for (int epochs = 1; epochs <= 3; ++epochs) {
    options["epochs"] = epochs;
    std::vector<float> now = weights(rows, options);
    for (size_t i = 0; i < now.size(); ++i)
      expected[i] = 0.75f * expected[i] + 0.25f * now[i];
  }
  options["average"] = 0.75;
  EXPECT_THAT(weights(rows, options), Pointwise(FloatNear(1e-6f), expected));
  // With windows of four batches the average moves once in each.
  options["batch"] = 4;
  options["accumulate"] = 4;
  EXPECT_THAT(weights(rows, options), Pointwise(FloatNear(2e-6f), expected));
}

TEST_F(Update, TheAverageIsWhatIsValidated) {
  Component rows = data(table(16));
  json options = plan(16, 1, "sgd");
  options["validation"] = 0.25;
  options["average"] = 0.999;  // hardly moved: the loss stays near that of no weights
  weights(rows, options);
  EXPECT_NEAR(report_["history"].back()["validation_loss"].get<double>(), std::log(2.0), 1e-3);
  EXPECT_LT(report_["history"].back()["loss"].get<double>(), std::log(2.0) - 1e-3);
}

TEST_F(Update, AnAverageAndAWindowGoOnToTheSameBits) {
  Component rows = data(table(40));
  json options{{"batch", 4},  {"accumulate", 3}, {"average", 0.9},
               {"epochs", 2}, {"rate", 0.125},   {"optimizer", "adam"}};
  std::vector<float> whole = weights(rows, options);
  options["run"] = (folder_ / "run").string();
  options["keep_steps"] = {4};  // in the middle of a window
  EXPECT_EQ(weights(rows, options), whole);
  std::string folder = (folder_ / "other").string();
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(folder_ / "run" / "step_4.safetensors",
                             folder + "/checkpoint.safetensors");
  options["run"] = folder;
  options["resume"] = true;
  options.erase("keep_steps");
  EXPECT_EQ(weights(rows, options), whole);
  options["accumulate"] = 2;
  EXPECT_THAT(failure(parse(kLinear), rows, options), HasSubstr("option accumulate"));
}

TEST_F(Update, ClippingByValueBoundsEachNumber) {
  Component two = data(write("two.csv", "a,b,label\n1,0,0\n0,2,1\n"));
  json options{{"batch", 2}, {"rate", 1.0}};
  // Without: w = 0.25, -0.25, -0.5, 0.5 (train_test).
  options["clip_value"] = 0.375;
  EXPECT_EQ(weights(two, options), (std::vector<float>{0.25, -0.25, -0.375, 0.375, 0, 0}));
  // Values first, then the norm of what is left: sqrt(2 (1/16 + 9/64)).
  double norm = std::sqrt(2 * (1.0 / 16 + 9.0 / 64)), factor = 0.25 / (norm + 1e-6);
  options["clip_norm"] = 0.25;
  std::vector<float> got = weights(two, options);
  EXPECT_NEAR(got[0], 0.25 * factor, 1e-6);
  EXPECT_NEAR(got[3], 0.375 * factor, 1e-6);
  EXPECT_THAT(refusal("tenon.pass/1", "trainer.clip"), HasSubstr("expected option norm or value"));
}

// PyTorch's clip_grad_norm_ leaves 3 of a norm of 3 as 2.99999900 (factor 3 / (3 + 1e-6)).
TEST_F(Update, ClippingByNormHasPyTorchsTinyTerm) {
  Component one = data(write("one.csv", "a,b,label\n8,0,0\n"));
  json options{{"batch", 1}, {"rate", 1.0}, {"frozen", "b"}};
  // The gradient is (-4, 4) at a, its norm sqrt(32).
  options["clip_norm"] = std::sqrt(32.0);
  double factor = std::sqrt(32.0) / (std::sqrt(32.0) + 1e-6);
  EXPECT_NEAR(weights(one, options)[0], 4 * factor, 5e-7);
  options["clip_norm"] = 1;
  EXPECT_NEAR(weights(one, options)[0], 4 / (std::sqrt(32.0) + 1e-6), 1e-7);
}

tn_status* sum_of_scores(void*, tn_edit* raw, const tn_objective* given, tn_value_id* out) {
  return guard([&]() -> Status {
    EditView edit{raw};
    Builder b(edit);
    Value loss = b.op("ReduceSum", {edit.value(given->predictions[0])}, {{"keepdims", 0}});
    *out = loss.id;
    return b.status();
  });
}

// The gradient of what is added to the only sample is an expanded 1.
TEST_F(Update, AGradientThatIsOneEverywhereCounts) {
  static const tn_loss table{sizeof table, 1, sum_of_scores};
  tn_component_ref* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.component->lend(ctx_, str("tenon.loss/1"), str("test.sum"),
                                                    &table, nullptr, nullptr, &raw))),
            "");
  lent_["loss"] = std::move(*Component::share(raw, "tenon.loss/1"));
  services.component->release(raw);
  auto model = parse(R"(graph {
  input %x: f32[n, 2]
  constant %b: f32[1, 2] = [0, 0]
  %y: f32[n, 2] = Add(%x, %b) @ny
  output y = %y
})");
  auto trained = train(model, data(TrainingTest::table(1)), {{"batch", 1}, {"rate", 0.5}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_THAT(weight(*trained, "b"), testing::Each(-0.5f));
}

// As a file gives it whose branches share an initializer with the nodes around them.
TEST_F(Update, WeightsInBodiesStayAndAreNamed) {
  auto model = parse(R"(graph {
  input %x: f32[n, 2]
  constant %go: bool[] = x'01'
  constant %w: f32[2, 2] = [0, 0, 0, 0]
  %xw: f32[n, 2] = MatMul(%x, %w) @product
  %y: f32[n, 2] = If(%go, %xw) {captures = 1, then_branch = graph {
    input %h: f32[n, 2]
    constant %v: f32[2, 2] = [1, 0, 0, 1]
    %t: f32[n, 2] = MatMul(%h, %v) @inner
    output t = %t
  }, else_branch = graph {
    input %h: f32[n, 2]
    constant %v: f32[2, 2] = [1, 0, 0, 1]
    %t: f32[n, 2] = Add(%h, %h) @twice
    output t = %t
  }} @choice
  output y = %y
})");
  std::vector<std::string> warnings;
  auto keep = [](void* all, uint32_t level, tn_str, tn_str message) {
    if (level == TN_LOG_WARNING)
      static_cast<std::vector<std::string>*>(all)->emplace_back(view(message));
  };
  tenon_on_log(session_, keep, &warnings);
  auto trained = train(model, data(table(8)), {{"batch", 8}, {"rate", 1.0}});
  tenon_on_log(session_, nullptr, nullptr);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_NE(weight(*trained, "w")[0], 0);
  EXPECT_THAT(warnings, testing::Contains("not trained, as they are constants of bodies of "
                                          "control flow: v"));
}

}  // namespace
}  // namespace tenon::test
