// SPDX-License-Identifier: Apache-2.0
// What decides about the learning rate besides its schedule: measured values, the batch.
#include <filesystem>

#include "plateau.hpp"
#include "training_session.hpp"

namespace tenon::test {
namespace {

class Rate : public TrainingTest {
 protected:
  std::vector<double> rates() {
    std::vector<double> out;
    for (const json& record : report_["history"])
      out.push_back(record["rate"]);
    return out;
  }
};

TEST_F(Rate, CutsAreThoseOfPyTorch) {
  json cases = golden("schedules.json")["plateaus"];
  ASSERT_GE(cases.size(), 3u);
  for (const json& one : cases) {
    SCOPED_TRACE(one["options"].dump());
    const json& options = one["options"];
    trainer::Plateau plateau;
    plateau.factor = options["factor"];
    plateau.patience = options["patience"];
    plateau.threshold = options.value("threshold", plateau.threshold);
    plateau.cooldown = options.value("cooldown", plateau.cooldown);
    plateau.lowest = options.value("lowest", plateau.lowest);
    trainer::Plateau::State at;
    for (size_t i = 0; i < one["values"].size(); ++i) {
      plateau.see(one["values"][i], one["higher_is_better"], at);
      EXPECT_NEAR(plateau.rate(0.1, at), one["rates"][i].get<double>(), 1e-12) << i;
    }
  }
}

// A rate of 1e-9 changes nothing that float32 shows, so no epoch is better than the first.
TEST_F(Rate, IsCutWhereTheValidationStays) {
  json options{{"rate", 1e-9}, {"epochs", 7}, {"batch", 8}, {"validation", 0.25}};
  options["plateau"] = {{"factor", 0.5}, {"patience", 1}};
  ASSERT_TRUE(train(parse(kLinear), data(table(32)), options).ok());
  EXPECT_THAT(rates(),
              testing::Pointwise(testing::DoubleEq(),
                                 std::vector{1e-9, 1e-9, 1e-9, 5e-10, 5e-10, 2.5e-10, 2.5e-10}));
  // Without a validation it is the loss of the training that decides.
  options.erase("validation");
  options["rate"] = 0.5;
  ASSERT_TRUE(train(parse(kLinear), data(table(32)), options).ok());
  EXPECT_THAT(rates(), testing::Each(0.5)) << "it gets better all the time";
}

TEST_F(Rate, GoesOnWithItsCuts) {
  Component rows = data(table(32));
  json options{{"rate", 1e-9}, {"epochs", 7}, {"batch", 8}, {"validation", 0.25}};
  options["plateau"] = {{"factor", 0.5}, {"patience", 1}};
  ASSERT_TRUE(train(parse(kLinear), rows, options).ok());
  std::vector<double> whole = rates();
  options["run"] = (folder_ / "run").string();
  options["epochs"] = 5;
  ASSERT_TRUE(train(parse(kLinear), rows, options).ok());
  options["epochs"] = 7;
  options["resume"] = true;
  auto went_on = train(parse(kLinear), rows, options);
  ASSERT_TRUE(went_on.ok()) << text_of(went_on.status());
  EXPECT_EQ(rates(), whole);
  options["plateau"]["patience"] = 3;
  EXPECT_THAT(failure(parse(kLinear), rows, options), HasSubstr("option plateau"));
}

TEST_F(Rate, GrowsWithTheBatch) {
  Component rows = data(table(32));
  json options{{"rate", 0.5}, {"batch", 16}, {"rate_batch", 8}};
  ASSERT_TRUE(train(parse(kLinear), rows, options).ok());
  EXPECT_EQ(rates().back(), 1.0);
  options["batch"] = 4;
  ASSERT_TRUE(train(parse(kLinear), rows, options).ok());
  EXPECT_EQ(rates().back(), 0.25);
  options["accumulate"] = 8;
  ASSERT_TRUE(train(parse(kLinear), rows, options).ok());
  EXPECT_EQ(rates().back(), 2.0);
}

TEST_F(Rate, BadOptionsOfAPlateauAreNamed) {
  Component rows = data(table(8));
  auto refused = [&](const json& plateau) {
    return failure(parse(kLinear), rows, {{"plateau", plateau}});
  };
  EXPECT_THAT(refused({{"factor", 1}}),
              HasSubstr("factor: expected a number of at least 0, and not 1, got 1"));
  EXPECT_THAT(refused({{"patience", -1}}), HasSubstr("patience: expected a number of at least 0"));
  EXPECT_THAT(refused({{"pat", 1}}), HasSubstr("got 'pat'"));
  EXPECT_THAT(refused({{"of", "validation"}}), HasSubstr("expected option validation with it"));
}

// One batch of all samples, so a step with another weight decay is a run of one epoch with that
// one.
TEST_F(Rate, AScheduleDrivesOtherNumbersToo) {
  Component rows = data(table(16));
  auto trained = [&](json options) {
    options.update({{"batch", 16}, {"rate", 0.5}, {"epochs", 2}});
    auto model = train(parse(kLinear), rows, options);
    EXPECT_TRUE(model.ok()) << text_of(model.status());
    return model.ok() ? weight(*model, "w") : std::vector<float>();
  };
  for (const char* id : {"trainer.sgd", "trainer.adamw", "trainer.lamb", "trainer.lion"}) {
    SCOPED_TRACE(id);
    auto with = [&](double decay, const json& schedules) {
      lent_["optimizer"] = std::move(*make("tenon.optimizer/1", id, {{"weight_decay", decay}}));
      return trained(schedules.empty() ? json::object() : json{{"schedules", schedules}});
    };
    std::vector<float> fixed = with(0.5, {});
    json constant{{"schedule", "constant"}, {"base", 0.5}};
    EXPECT_EQ(with(0.25, {{"weight_decay", constant}}), fixed);
    // Nothing is to be pulled in the first step, when all weights are zero: the second one decides.
    json later{{"schedule", "linear"}, {"from", 0}, {"to", 1}};
    EXPECT_EQ(with(0.25, {{"weight_decay", later}}), fixed);
  }
  lent_.clear();
  auto smoothed = [&](double e, const json& schedules) {
    lent_["loss"] =
        std::move(*make("tenon.loss/1", "trainer.cross_entropy", {{"label_smoothing", e}}));
    return trained(schedules.empty() ? json::object() : json{{"schedules", schedules}});
  };
  json half{{"schedule", "constant"}, {"base", 0.5}};
  EXPECT_EQ(smoothed(0.25, {{"label_smoothing", half}}), smoothed(0.5, {}));
  EXPECT_NE(smoothed(0.25, {{"label_smoothing", half}}), smoothed(0.25, {}));
}

TEST_F(Rate, WhatNoScheduleCanDriveIsNamed) {
  Component rows = data(table(8));
  auto refused = [&](const json& schedules) {
    return failure(parse(kLinear), rows, {{"optimizer", "adamw"}, {"schedules", schedules}});
  };
  json one{{"schedule", "constant"}};
  EXPECT_THAT(refused({{"momentum", one}}), HasSubstr("(weight_decay), got 'momentum'"));
  EXPECT_THAT(refused({{"weight_decay", 0.5}}), HasSubstr("expected an object with schedule"));
  EXPECT_THAT(refused({{"weight_decay", {{"schedule", "cosin"}}}}), HasSubstr("scheduler.cosin"));
}

}  // namespace
}  // namespace tenon::test
