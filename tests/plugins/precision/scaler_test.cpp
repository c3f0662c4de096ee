// SPDX-License-Identifier: Apache-2.0
// Configurations and states of PyTorch's, Apex' and DeepSpeed's loss scalers.
#include "scaled_step.hpp"

namespace tenon::test {
namespace {

// DeepSpeed's DynamicLossScaler.update_scale, as its source has it.
struct DeepSpeed {
  double cur_scale, scale_factor, min_scale;
  int64_t cur_iter, last_overflow_iter, scale_window, delayed_shift, cur_hysteresis;
  bool consecutive_hysteresis;
  void update(bool overflow) {
    if (overflow) {
      if (delayed_shift == 1 || cur_hysteresis == 1)
        cur_scale = std::max(cur_scale / scale_factor, min_scale);
      else
        --cur_hysteresis;
      last_overflow_iter = cur_iter;
    } else {
      if (consecutive_hysteresis) cur_hysteresis = delayed_shift;
      if ((cur_iter - last_overflow_iter) % scale_window == 0) {
        if (!consecutive_hysteresis) cur_hysteresis = delayed_shift;
        cur_scale *= scale_factor;
      }
    }
    ++cur_iter;
  }
  json state() const {
    return {{"cur_scale", cur_scale},
            {"scale_factor", scale_factor},
            {"min_scale", min_scale},
            {"cur_iter", cur_iter},
            {"last_overflow_iter", last_overflow_iter},
            {"scale_window", scale_window},
            {"delayed_shift", delayed_shift},
            {"cur_hysteresis", cur_hysteresis},
            {"consecutive_hysteresis", consecutive_hysteresis},
            {"optimizer_state_dict", json::object()}};
  }
};

TEST_F(LossScale, GoesOnFromDeepSpeedsState) {
  for (bool consecutive : {false, true}) {
    SCOPED_TRACE(consecutive);
    DeepSpeed theirs{4096, 2, 1, 0, -1, 3, 3, 3, consecutive};
    uint32_t draws = 7;
    auto overflows = [&] { return (draws = draws * 1664525 + 1013904223) >> 30 == 0; };
    for (int i = 0; i < 17; ++i)
      theirs.update(overflows());
    ASSERT_NO_FATAL_FAILURE(start_over());
    ASSERT_NO_FATAL_FAILURE(go_on("deepspeed", {{"state", theirs.state()}}));
    for (int i = 0; i < 40; ++i) {
      bool overflow = overflows();
      theirs.update(overflow);
      step(overflow ? kInf : 1e-20f);
      ASSERT_EQ(scale(), theirs.cur_scale) << i;
      ASSERT_EQ((get<int32_t>("loss_scale/hysteresis", TN_I32)), theirs.cur_hysteresis) << i;
    }
  }
}

TEST_F(LossScale, BeginsAsDeepSpeedsConfigurationSays) {
  go_on("deepspeed", {{"config",
                       {{"enabled", true},
                        {"loss_scale", 0},
                        {"initial_scale_power", 4},
                        {"loss_scale_window", 2},
                        {"hysteresis", 1},
                        {"min_loss_scale", 8}}}});
  const std::pair<bool, float> expected[] = {{false, 0},  {false, 32}, {true, 16},
                                             {true, 8},   {true, 8},   {false, 8},
                                             {false, 16}, {false, 16}, {false, 32}};
  for (auto [overflow, wanted] : expected) {
    step(overflow ? kInf : 1e-20f);
    EXPECT_EQ(scale(), wanted > 0 ? wanted : 16);
  }
}

TEST_F(LossScale, AScaleOfAConfigurationMayBeStatic) {
  go_on("deepspeed", {{"config", {{"loss_scale", 128}, {"loss_scale_window", 1}}}});
  for (float factor : {1e-20f, kInf, kInf, 1e-20f}) {
    step(factor);
    EXPECT_EQ(scale(), 128);
  }
}

// With a hysteresis of 1 no state counts overflows, so that none has a number to begin with.
TEST_F(LossScale, AStateThatIsNotThereHasNoNumberToBeginWith) {
  go_on("deepspeed", {{"state", DeepSpeed{4096, 2, 1, 8, 3, 1000, 1, 1, false}.state()}});
  EXPECT_FALSE(result_.view().find("loss_scale/hysteresis"));
  step(kInf);
  EXPECT_EQ(scale(), 2048);
}

TEST_F(LossScale, GoesOnFromApexsState) {
  go_on("apex", {{"state", {{"loss_scaler0", {{"loss_scale", 512.0}, {"unskipped", 1998}}}}}});
  step(1e-20f);
  EXPECT_EQ(scale(), 512);
  step(1e-20f);
  EXPECT_EQ(scale(), 1024);
  EXPECT_EQ(tracker(), 0);
}

TEST_F(LossScale, GoesOnFromPyTorchsStateDict) {
  const json all = golden("grad_scaler.json");
  for (const json& one : all["cases"]) {
    ASSERT_NO_FATAL_FAILURE(start_over());
    ASSERT_NO_FATAL_FAILURE(go_on("torch", {{"state", one["state_dict"]}}));
    for (size_t i = 0; i < one["inputs"].size(); ++i) {
      step(one["inputs"][i] == 1 ? 1e-20f : kInf);
      ASSERT_EQ(scale(), one["after"][i][0].get<float>()) << i;
      ASSERT_EQ(tracker(), one["after"][i][1].get<int32_t>()) << i;
    }
  }
}

TEST_F(LossScale, StatesAndConfigurationsThatAreWrongAreNamed) {
  auto state = [&](const char* preset, const json& given) {
    return refused(preset, {{"state", given}});
  };
  EXPECT_THAT(state("apex", {{"loss_scale", 8}}),
              HasSubstr("option state: expected unskipped, got loss_scale"));
  EXPECT_THAT(state("torch", {{"loss_scale", 8}, {"unskipped", 1}}),
              HasSubstr("option state: expected scale, got loss_scale, unskipped"));
  EXPECT_THAT(state("deepspeed", {{"cur_scale", -1}, {"cur_iter", 1}, {"last_overflow_iter", 0}}),
              HasSubstr("option state: cur_scale: expected a number above 0, got -1"));
  EXPECT_THAT(state("apex", {{"loss_scaler0", json::object()}, {"loss_scaler1", json::object()}}),
              HasSubstr("expected the state of one loss scaler, got 2"));
  EXPECT_THAT(refused("deepspeed", {{"config", {{"loss_scale_windows", 4}}}}),
              HasSubstr("unknown key loss_scale_windows (did you mean 'loss_scale_window'?)"));
  EXPECT_THAT(refused("deepspeed", {{"config", {{"enabled", false}}}}),
              HasSubstr("enabled is false"));
  EXPECT_THAT(refused("deepspeed", {{"config", {{"loss_scale", -128}}}}),
              HasSubstr("loss_scale: expected a scale, or 0 for a dynamic one, got -128"));
  EXPECT_THAT(state("apex", {{"loss_scale", 1e39}, {"unskipped", 1}}),
              HasSubstr("expected an initial scale of at most 3.4028234663852886e+38, got 1e+39"));
  const json moved{{"cur_scale", 65536}, {"cur_iter", 1}, {"last_overflow_iter", 0}};
  EXPECT_THAT(refused("deepspeed", {{"config", {{"loss_scale", 128}}}, {"state", moved}}),
              HasSubstr("option state: expected the scale 128.0, which never moves"));
  EXPECT_THAT(refused("torch", {{"config", json::object()}}),
              HasSubstr("option config: preset torch has none"));
}

}  // namespace
}  // namespace tenon::test
