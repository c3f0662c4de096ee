// SPDX-License-Identifier: Apache-2.0
#include "scaled_step.hpp"

namespace tenon::test {
namespace {

TEST_F(LossScale, FollowsPyTorchsTraceExactly) {
  json trace = golden("amp.json")["grad_scaler"];
  make({{"growth_interval", trace["state_dict"]["growth_interval"]}});

  for (size_t i = 0; i < trace["overflow"].size(); ++i) {
    bool overflow = trace["overflow"][i] != 0;
    Step got = step(overflow ? kInf : 1);
    json expected = trace["scale_tracker_param"][i];
    EXPECT_EQ(got.found, overflow) << i;
    EXPECT_EQ(scale(), expected[0].get<float>()) << i;
    EXPECT_EQ(tracker(), expected[1].get<int32_t>()) << i;
    EXPECT_NEAR(get<float>("w", TN_F32), expected[2].get<float>(), 1e-6) << i;
  }
  EXPECT_EQ(trace["overflow"].size(), 15u);
}

TEST_F(LossScale, GoesOnFromPyTorchsState) {
  json trace = golden("amp.json")["grad_scaler"];
  make({{"growth_interval", 3}});
  size_t from = 6;
  json at = trace["scale_tracker_param"][from];
  set("loss_scale/scale", at[0].get<float>());
  set_tracker(at[1].get<int32_t>());
  set("w", at[2].get<float>());

  for (size_t i = from + 1; i < trace["overflow"].size(); ++i) {
    step(trace["overflow"][i] != 0 ? kInf : 1);
    EXPECT_EQ(scale(), trace["scale_tracker_param"][i][0].get<float>()) << i;
    EXPECT_EQ(tracker(), trace["scale_tracker_param"][i][1].get<int32_t>()) << i;
  }
}

TEST_F(LossScale, NeverBecomesInfinite) {
  json cap = golden("amp.json")["scale_cap"];
  make({{"growth_interval", 1}});
  set("loss_scale/scale", 0x1p127f);
  step(1e-30f);
  EXPECT_EQ(scale(), cap[0].get<float>());
  EXPECT_EQ(tracker(), cap[1].get<int32_t>());
}

TEST_F(LossScale, MayFallBelowOne) {
  make({{"backoff_factor", 0.25}});
  set("loss_scale/scale", 1);
  step(kInf);
  EXPECT_EQ(scale(), 0.25f);
}

TEST_F(LossScale, ReadsNaNAsOverflow) {
  make(json::object());
  EXPECT_TRUE(step(std::numeric_limits<float>::quiet_NaN()).found);
  EXPECT_EQ(get<float>("w", TN_F32), 1);
}

TEST_F(LossScale, GivesOutLossAndGradientUnscaled) {
  make(json::object());
  Step got = step(0.5f);
  EXPECT_EQ(got.loss, 0.5f);
  EXPECT_EQ(got.scaled, 32768.0f);
  EXPECT_EQ(got.gradient, 0.5f);
}

TEST_F(LossScale, ASkippedStepHoldsWhatDependsOnGradientsAndWhatIsNamed) {
  make({{"hold", {"steps"}}});
  step(1);
  step(kInf);
  EXPECT_NEAR(get<float>("w", TN_F32), 0.9, 1e-6);
  EXPECT_EQ(get<float>("steps", TN_F32), 1);
  EXPECT_EQ(get<float>("mean", TN_F32), 2);
  EXPECT_EQ(report_["held_states"], json({"w", "steps"}));
}

// The rules of DeepSpeed's DynamicLossScaler with delayed_shift 2, by hand: of two overflows since
// the scale last grew the first one leaves it, later ones halve it, and never below 1.
TEST_F(LossScale, DeepSpeedsPresetLetsOneOverflowPass) {
  make({{"preset", "deepspeed"}, {"growth_interval", 3}});
  set("loss_scale/scale", 8);
  struct {
    bool overflow;
    float scale;
    int32_t tracker, left;
  } expected[] = {{true, 8, 0, 1},  {true, 4, 0, 1}, {true, 2, 0, 1},  {false, 2, 1, 1},
                  {true, 1, 0, 1},  {true, 1, 0, 1}, {false, 1, 1, 1}, {false, 1, 2, 1},
                  {false, 2, 0, 2}, {true, 2, 0, 1}, {true, 1, 0, 1},  {false, 1, 1, 1}};
  for (const auto& one : expected) {
    step(one.overflow ? kInf : 1);
    EXPECT_EQ(scale(), one.scale) << (&one - expected);
    EXPECT_EQ(tracker(), one.tracker) << (&one - expected);
    EXPECT_EQ(get<int32_t>("loss_scale/hysteresis", TN_I32), one.left) << (&one - expected);
  }
}

TEST_F(LossScale, ApexsScaleGrowsToItsHighest) {
  make({{"preset", "apex"}, {"growth_interval", 1}});
  set("loss_scale/scale", 0x1p23f);
  for (int i = 0; i < 3; ++i) {
    step(1e-20f);
    EXPECT_EQ(scale(), 0x1p24f) << i;
  }
  step(kInf);
  EXPECT_EQ(scale(), 0x1p23f);
}

TEST_F(LossScale, PresetsBeginWhereTheirsDo) {
  build_loss();
  OwnedGraph plain = std::move(model_);
  for (auto [preset, first] :
       {std::pair{"torch", 65536.0}, {"apex", 65536.0}, {"deepspeed", 4294967296.0}}) {
    model_ = OwnedGraph::take([&] {
      tn_graph* copy = nullptr;
      EXPECT_EQ(text_of(Status(services.graph->clone(plain.get(), &copy))), "");
      return copy;
    }());
    ASSERT_EQ(apply("precision.loss_scale", {{"preset", preset}}), "");
    Node choice = result_.view().find("loss_scale/current").producer();
    EXPECT_EQ(*choice.input(2).constant().data<float>(), first) << preset;
  }
}

TEST_F(LossScale, BoundsThatCrossAreRefused) {
  build_loss();
  EXPECT_THAT(apply("precision.loss_scale_step", {{"min_scale", 8}, {"max_scale", 4}}),
              HasSubstr("option min_scale: expected at most max_scale, 4, got 8"));
}

TEST_F(LossScale, WrongOrderIsRefused) {
  build_loss();
  EXPECT_THAT(apply("precision.loss_scale_step", json::object()),
              HasSubstr("the gradients are not unscaled"));
  EXPECT_THAT(apply("precision.unscale", json::object()),
              HasSubstr("apply precision.loss_scale before taking gradients"));
  EXPECT_THAT(apply("precision.loss_scale", {{"output", "los"}}),
              HasSubstr("the graph has no output 'los'"));
  ASSERT_EQ(apply("precision.loss_scale", json::object()), "");
  model_ = std::move(result_);
  EXPECT_THAT(apply("precision.loss_scale", json::object()), HasSubstr("the loss is scaled once"));
  EXPECT_THAT(apply("precision.unscale", {{"gradients", "g*"}}),
              HasSubstr("option gradients: no value fits 'g*'"));
}

TEST_F(LossScale, OnlyANumberIsALoss) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 2});
    ASSERT_EQ(text_of(edit.output("y", node(edit, "Relu", {x}, "relu"))), "");
  });
  EXPECT_THAT(apply("precision.loss_scale", json::object()),
              HasSubstr("output y: expected a loss, one float number"));
}

}  // namespace
}  // namespace tenon::test
