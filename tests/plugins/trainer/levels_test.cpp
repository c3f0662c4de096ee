// SPDX-License-Identifier: Apache-2.0
// Levels of mixed precision, the scaler's options, and passes on forward and backward together.
#include <cmath>

#include "tenon/half.hpp"

#include "training_session.hpp"

namespace tenon::test {
namespace {

constexpr std::string_view kProbability = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 1] = [0.5, -0.5]
  %z: f32[n, 1] = MatMul(%x, %w) @product
  %y: f32[n, 1] = FINAL(%z) @final
  output y = %y
}
)";

class Levels : public TrainingTest {
 protected:
  void SetUp() override {
    TrainingTest::SetUp();
    model_ = parse(kLinear);
  }
  void TearDown() override {
    lent_.clear();
    model_ = {};
  }
  json options(const char* precision) {
    return {{"epochs", 5}, {"batch", 16}, {"rate", 1.0}, {"precision", precision}};
  }
  std::vector<float> weights(const json& given) {
    auto trained = train(model_, data(table(96)), given);
    EXPECT_TRUE(trained.ok()) << text_of(trained.status());
    return trained.ok() ? weight(*trained, "w") : std::vector<float>();
  }
  std::string refusal(const json& given) { return failure(model_, data(table(96)), given); }
  OwnedGraph probability(const char* final) {
    std::string text(kProbability);
    text.replace(text.find("FINAL"), 5, final);
    return parse(text);
  }

  OwnedGraph model_;
};

TEST_F(Levels, AreApexsLevels) {
  std::vector<float> single = weights(options("fp32"));
  EXPECT_EQ(weights(options("O0")), single);
  EXPECT_EQ(weights(options("O1")), weights(options("fp16")));
  for (const char* level : {"O1", "O2", "O3"})
    EXPECT_THAT(weights(options(level)), testing::Pointwise(testing::FloatNear(0.05f), single))
        << level;
  bool all_low = true, any_wide = false;
  for (float x : weights(options("O3")))
    all_low = all_low && float_of_half(half_of_float(x)) == x;
  for (float x : weights(options("O2")))
    any_wide = any_wide || float_of_half(half_of_float(x)) != x;
  EXPECT_TRUE(all_low) << "O3 has parameters of float16";
  EXPECT_TRUE(any_wide) << "O2 has a master copy";
}

TEST_F(Levels, TheScalerIsChosen) {
  json given = options("fp16");
  weights(given);
  EXPECT_EQ(report_["history"].back()["skipped"], 0);
  given["loss_scale"] = {{"preset", "deepspeed"}};
  weights(given);
  EXPECT_GT(report_["history"].back()["skipped"], 8) << "it begins at 2^32";
  given["loss_scale"] = {{"init_scale", 256}};
  weights(given);
  EXPECT_EQ(report_["history"].back()["skipped"], 0);
}

TEST_F(Levels, TheScalersOptionsAreChecked) {
  json given = options("fp16");
  given["loss_scale"] = {{"initial", 4}};
  EXPECT_THAT(refusal(given), HasSubstr("option loss_scale"));
  given["loss_scale"] = {{"preset", "apx"}};
  EXPECT_THAT(refusal(given), HasSubstr("expected one of torch, apex, deepspeed, got 'apx'"));
  given = options("bf16");
  given["loss_scale"] = {{"init_scale", 4}};
  EXPECT_THAT(refusal(given),
              HasSubstr("option loss_scale: expected precision fp16, O1 or O2, got bf16"));
}

TEST_F(Levels, ProbabilitiesInFloat16AreRefusedAndLogitsTaken) {
  Component rows = data(table(32));
  json given{{"loss", "bce"}, {"rate", 0.1}, {"precision", "fp16"}};
  EXPECT_THAT(failure(probability("HardSigmoid"), rows, given),
              HasSubstr("use the one of logits (trainer.bce_with_logits)"));
  EXPECT_EQ(failure(probability("Sigmoid"), rows, given), "");
  given["precision"] = "bf16";
  EXPECT_EQ(failure(probability("HardSigmoid"), rows, given), "");
}

TEST_F(Levels, ARecordTellsWhatFloat16MakesOfGradients) {
  json given = options("fp32");
  given["gradient_histogram"] = true;
  given["epochs"] = 1;
  std::vector<float> with = weights(given);
  const json record = report_["history"][0];
  EXPECT_EQ(record["gradients_flushed"], 0);
  EXPECT_EQ(record["gradients_overflow"], 0);
  double largest = record["largest_gradient"];
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 1);
  double advised = record["advised_loss_scale"];
  EXPECT_LE(advised * largest * 4, 65504);
  EXPECT_GT(advised * largest * 8, 65504);
  given.erase("gradient_histogram");
  EXPECT_EQ(with, weights(given)) << "it changes nothing";
}

TEST_F(Levels, PassesOnForwardAndBackwardAreApplied) {
  json given = options("fp32");
  std::vector<float> plain = weights(given);
  given["joint"] = "autodiff.recompute";
  EXPECT_EQ(weights(given), plain);
  given["joint"] = "autodiff.example_norms";
  EXPECT_EQ(weights(given), plain) << "norms of examples change nothing";
  given["joint"] = {{"autodiff.example_norms", {{"clip", 1e6}}}};
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatNear(1e-6f), plain));
  given["joint"] = {{"autodiff.example_norms", {{"clip", 1e-3}}}};
  EXPECT_NE(weights(given), plain) << "what an example may add is bounded";
  given["joint"] = {{"autodiff.compress", {{"min_bytes", 0}, {"form", "bfloat16"}}}};
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatNear(0.05f), plain));
  given["joint"] = {{"autodiff.compress", {{"form", "int4"}}}};
  EXPECT_THAT(refusal(given), HasSubstr("expected one of int8, bfloat16, got 'int4'"));
  given["joint"] = "autodiff.remember";
  EXPECT_THAT(refusal(given), HasSubstr("autodiff.remember"));
}

}  // namespace
}  // namespace tenon::test
