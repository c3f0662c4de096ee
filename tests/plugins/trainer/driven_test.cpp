// SPDX-License-Identifier: Apache-2.0
// Numbers that change while a model trains: any of them, by time or by measured values.
#include <filesystem>

#include "measured.hpp"
#include "training_session.hpp"

namespace tenon::test {
namespace {

// Scores over a temperature.
constexpr std::string_view kTempered = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 2] = [0, 0, 0, 0]
  constant %temperature: f32[] = [9]
  %xw: f32[n, 2] = MatMul(%x, %w) @product
  %y: f32[n, 2] = Div(%xw, %temperature) @tempered
  output y = %y
}
)";

constexpr std::string_view kWithBias = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 2] = [0.5, -0.25, 1, -2]
  constant %b: f32[2] = [1, 2]
  %xw: f32[n, 2] = MatMul(%x, %w) @nxw
  %y: f32[n, 2] = Add(%xw, %b) @ny
  output y = %y
})";

class DrivenNumbers : public TrainingTest {
 protected:
  static json options(const json& schedules, const json& more = {}) {
    json out{{"rate", 2}, {"epochs", 8}, {"batch", 16}, {"shuffle", false}};
    out["schedules"] = schedules;
    out.update(more.is_null() ? json::object() : more);
    return out;
  }
  // Trains on the rows of the golden runs; each of their epochs is a step.
  void expect(std::string_view name, const json& schedules, const json& more = {}) {
    json wanted = golden("driven.json")[name];
    auto model = train(parse(kTempered), data(table(16)), options(schedules, more));
    ASSERT_TRUE(model.ok()) << text_of(model.status());
    for (size_t i = 0; i < wanted["losses"].size(); ++i)
      EXPECT_NEAR(report_["history"][i]["loss"], wanted["losses"][i].get<double>(), 1e-6) << i;
    std::vector<float> w = weight(*model, "w");
    for (size_t i = 0; i < w.size(); ++i)
      EXPECT_NEAR(w[i], wanted["w"][i].get<double>(), 1e-5) << i;
    EXPECT_EQ(weight(*model, "temperature"), std::vector<float>{9}) << "the model keeps its own";
  }
  Component made(std::string_view role, std::string_view id, const json& options) {
    auto one = make(role, id, options);
    EXPECT_TRUE(one.ok()) << text_of(one.status());
    return std::move(*one);
  }
};

const json kLine{{"schedule", "linear"}, {"from", 4}, {"to", 1}};

TEST_F(DrivenNumbers, AreThoseOfPyTorch) {
  lent_["optimizer"] = made("tenon.optimizer/1", "trainer.sgd", {{"weight_decay", 7}});
  expect("schedules",
         {{"temperature", kLine}, {"weight_decay", {{"schedule", "cosine"}, {"base", 0.1}}}});
}

// Three times the optimizer's own decay, whatever that is driven to.
TEST_F(DrivenNumbers, OfGroupsKeepTheirRatio) {
  auto trained = [&](double own, double of_group, const json& more) {
    lent_["optimizer"] = made("tenon.optimizer/1", "trainer.adamw", {{"weight_decay", own}});
    json given{
        {"rate", 0.125},
        {"epochs", 2},
        {"batch", 8},
        {"shuffle", false},
        {"groups", {{"bias", {{"parameters", "b"}, {"options", {{"weight_decay", of_group}}}}}}}};
    given.update(more);
    auto model = train(parse(kWithBias), data(table(16)), given);
    EXPECT_TRUE(model.ok()) << text_of(model.status());
    return model.ok() ? weight(*model, "b") : std::vector<float>();
  };
  auto driven = [](double base) {
    return json{{"schedules", {{"weight_decay", {{"schedule", "constant"}, {"base", base}}}}}};
  };
  auto near = [](const std::vector<float>& wanted) {
    return testing::Pointwise(testing::FloatNear(1e-6f), wanted);
  };
  EXPECT_THAT(trained(0.5, 1.5, driven(0.5)), near(trained(0.5, 1.5, json::object())));
  EXPECT_THAT(trained(0.5, 1.5, driven(1)), near(trained(1, 3, json::object())));
  EXPECT_THAT(trained(0.5, 1.5, driven(0.5)), testing::Not(near(trained(0.5, 0.5, driven(0.5)))));
  EXPECT_THAT(trained(0, 1.5, driven(0.5)), near(trained(0, 0.5, json::object())));
}

TEST_F(DrivenNumbers, MomentumIsOne) {
  auto trained = [&](const json& more) {
    lent_["optimizer"] = made("tenon.optimizer/1", "trainer.sgd", {{"momentum", 0.5}});
    json given{{"rate", 0.125}, {"epochs", 3}, {"batch", 8}, {"shuffle", false}};
    given.update(more);
    auto model = train(parse(kWithBias), data(table(16)), given);
    EXPECT_TRUE(model.ok()) << text_of(model.status());
    return model.ok() ? weight(*model, "b") : std::vector<float>();
  };
  auto driven = [](double base) {
    return json{{"schedules", {{"momentum", {{"schedule", "constant"}, {"base", base}}}}}};
  };
  EXPECT_EQ(trained(driven(0.5)), trained(json::object()));
  EXPECT_NE(trained(driven(0.75)), trained(json::object()));
}

TEST_F(DrivenNumbers, AreDrivenInFloat64Too) {
  lent_["optimizer"] = made("tenon.optimizer/1", "trainer.sgd", {{"weight_decay", 7}});
  expect("schedules",
         {{"temperature", kLine}, {"weight_decay", {{"schedule", "cosine"}, {"base", 0.1}}}},
         {{"precision", "fp64"}});
}

TEST_F(DrivenNumbers, FollowAMeasuredValue) {
  json line = kLine;
  line["follow"] = {{"value", "loss"}, {"begin", 0.6931}, {"end", 0.66}};
  expect("follow", {{"temperature", line}});
}

TEST_F(DrivenNumbers, AreCutOnAPlateau) {
  json constant{{"schedule", "constant"}, {"base", 4}};
  constant["plateau"] = {{"factor", 0.5}, {"patience", 1}, {"threshold", 0.1}, {"of", "loss"}};
  expect("plateau", {{"temperature", constant}});
}

// The rate is one of them, in place of the option rate.
TEST_F(DrivenNumbers, HaveTheRateAmongThem) {
  json wanted = golden("driven.json")["follow"];
  json rate{{"schedule", "linear"}, {"from", 4}, {"to", 1}};
  rate["follow"] = {{"value", "loss"}, {"begin", 0.6931}, {"end", 0.66}};
  json constant{{"schedule", "constant"}, {"base", 1}};
  ASSERT_TRUE(train(parse(kTempered), data(table(16)),
                    options({{"learning_rate", rate}, {"temperature", constant}}))
                  .ok());
  double share = 0;
  for (const json& record : report_["history"]) {
    EXPECT_NEAR(record["rate"].get<double>(), 4 - 3 * share, 1e-5);
    share = trainer::Follow{"loss", 0.6931, 0.66}.see(record["loss"], share);
  }
  EXPECT_GT(share, 0.5) << "it went most of the way";
}

TEST_F(DrivenNumbers, GoOnWhereTheyWere) {
  json line = kLine;
  line["follow"] = {{"value", "loss"}, {"begin", 0.6931}, {"end", 0.66}};
  json rate{{"schedule", "constant"}, {"base", 2}};
  rate["plateau"] = {{"factor", 0.5}, {"patience", 0}, {"threshold", 0.01}, {"of", "loss"}};
  json given = options({{"temperature", line}, {"learning_rate", rate}});
  auto whole = train(parse(kTempered), data(table(16)), given);
  ASSERT_TRUE(whole.ok()) << text_of(whole.status());
  std::vector<float> wanted = weight(*whole, "w");
  given["run"] = (folder_ / "run").string();
  given["epochs"] = 5;
  ASSERT_TRUE(train(parse(kTempered), data(table(16)), given).ok());
  given["epochs"] = 8;
  given["resume"] = true;
  auto went_on = train(parse(kTempered), data(table(16)), given);
  ASSERT_TRUE(went_on.ok()) << text_of(went_on.status());
  EXPECT_EQ(weight(*went_on, "w"), wanted);
  given["schedules"]["temperature"]["follow"]["end"] = 0.5;
  EXPECT_THAT(failure(parse(kTempered), data(table(16)), given), HasSubstr("schedules"));
}

// Live ones are a list, each with the next: the form in which functions of scripts come.
TEST_F(DrivenNumbers, ComeAsAListOfComponents) {
  auto listed = [&](std::string_view name, const char* id, const json& options,
                    const Component* next) {
    Component schedule = made("tenon.schedule/1", id, options);
    tn_options* given = nullptr;
    EXPECT_TRUE(Status(services.options->create(ctx_, &given)).ok());
    auto set = [&](std::string_view key, tn_any value) {
      EXPECT_TRUE(Status(services.options->set(given, str(key), value)).ok());
    };
    set("name", any_text(name));
    set("schedule", {TN_ANY_COMPONENT, 0, 1, {.p = schedule.raw()}});
    if (next) set("next", {TN_ANY_COMPONENT, 0, 1, {.p = next->raw()}});
    tn_component_ref* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.component->create(ctx_, str("tenon.schedule/1"),
                                                        str("trainer.driven"), given, &raw))),
              "");
    services.options->release(given);
    auto out = Component::share(raw, "tenon.schedule/1");
    services.component->release(raw);
    return std::move(*out);
  };
  Component last = listed("weight_decay", "scheduler.cosine", {{"base", 0.1}}, nullptr);
  lent_["optimizer"] = made("tenon.optimizer/1", "trainer.sgd", {{"weight_decay", 7}});
  lent_["schedules"] = listed("temperature", "scheduler.linear", {{"from", 4}, {"to", 1}}, &last);
  expect("schedules", nullptr, nullptr);
  lent_["schedules"] = listed("weight_decay", "scheduler.constant", {}, &last);
  EXPECT_THAT(failure(parse(kTempered), data(table(16)), options(nullptr)),
              HasSubstr("option schedules: expected one schedule for weight_decay, got two"));
}

TEST_F(DrivenNumbers, DriveDropout) {
  constexpr std::string_view kDropping = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 2] = [0, 0, 0, 0]
  constant %ratio: f32[] = [0.5]
  %d: f32[n, 2] = Dropout(%x, %ratio) @drop
  %y: f32[n, 2] = MatMul(%d, %w) @product
  output y = %y
}
)";
  auto trained = [&](const json& schedules) {
    auto model = train(parse(kDropping), data(table(16)), options(schedules));
    EXPECT_TRUE(model.ok()) << text_of(model.status());
    return model.ok() ? weight(*model, "w") : std::vector<float>();
  };
  auto constant = [](double base) { return json{{"schedule", "constant"}, {"base", base}}; };
  std::vector<float> half = trained(nullptr), driven = trained({{"dropout", constant(0.5)}});
  std::vector<float> none = trained({{"dropout", constant(0)}});
  ASSERT_EQ(half.size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(driven[i], half[i], 1e-6);
  EXPECT_NE(none, half);
}

TEST_F(DrivenNumbers, BadOnesAreNamed) {
  auto refused = [&](const json& schedules, const json& more = {}) {
    return failure(parse(kTempered), data(table(16)), options(schedules, more));
  };
  json follow{{"value", "loss"}, {"begin", 1}, {"end", 0}};
  auto with = [&](const char* key, const json& value) {
    json line = kLine;
    line["follow"] = follow;
    line["follow"][key] = value;
    return refused({{"temperature", line}});
  };
  EXPECT_THAT(with("value", "accuracy"),
              HasSubstr("expected a value that is measured here (loss), got 'accuracy'"));
  EXPECT_THAT(with("end", 1), HasSubstr("expected two values begin and end, got 1 for both"));
  EXPECT_THAT(with("middle", 1), HasSubstr("expected value, begin, end, got 'middle'"));
  EXPECT_THAT(with("begin", "x"), HasSubstr("begin: expected a number"));
  EXPECT_THAT(refused({{"temp", kLine}}), HasSubstr("(temperature), got 'temp'"));
  json nan{{"schedule", "linear"}, {"from", 1e308}, {"to", -1e308}};
  EXPECT_THAT(refused({{"temperature", nan}}),
              testing::AllOf(HasSubstr("option schedules: temperature"),
                             HasSubstr("step 0: expected a finite number")));
}

}  // namespace
}  // namespace tenon::test
