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
  EXPECT_THAT(refused({{"factor", 1}}), HasSubstr("factor: expected a number below 1, got 1"));
  EXPECT_THAT(refused({{"patience", -1}}), HasSubstr("patience: expected a number of at least 0"));
  EXPECT_THAT(refused({{"pat", 1}}), HasSubstr("got 'pat'"));
  EXPECT_THAT(refused({{"of", "validation"}}), HasSubstr("expected option validation with it"));
}

}  // namespace
}  // namespace tenon::test
