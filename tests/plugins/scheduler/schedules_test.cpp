// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <numbers>

#include "tenon/role/schedule.h"

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

constexpr const char* kRole = "tenon.schedule/1";

class Schedules : public PluginTest {
 protected:
  Component schedule(std::string_view name, const json& options) {
    Result<Component> made = make(kRole, cat("scheduler.", name), options);
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return made.ok() ? std::move(*made) : Component();
  }
  static Result<double> at(const Component& schedule,
                           uint64_t step,
                           uint64_t total = TN_STEPS_UNKNOWN) {
    double out = 0;
    Status failed(schedule.table<tn_schedule>()->value(schedule.self(), step, total, &out));
    if (!failed.ok()) return failed;
    return out;
  }
  static double value(const Component& schedule, uint64_t step, uint64_t total = TN_STEPS_UNKNOWN) {
    Result<double> got = at(schedule, step, total);
    EXPECT_TRUE(got.ok()) << text_of(got.status());
    return got.ok() ? *got : NAN;
  }
  // A composition: the options given by name are live components.
  Component compose(std::string_view name,
                    const json& plain,
                    const std::vector<std::pair<const char*, const Component*>>& parts) {
    tn_options* options = nullptr;
    EXPECT_TRUE(Status(services.options->create(ctx_, &options)).ok());
    EXPECT_TRUE(Status(services.options->parse(options, str(plain.dump()))).ok());
    for (const auto& [key, part] : parts) {
      tn_any any{TN_ANY_COMPONENT, 0, 1, {.p = refs_.at(part)}};
      EXPECT_TRUE(Status(services.options->set(options, str(key), any)).ok());
    }
    tn_component_ref* made = nullptr;
    Status failed(
        services.component->create(ctx_, str(kRole), str(cat("scheduler.", name)), options, &made));
    EXPECT_TRUE(failed.ok());
    services.options->release(options);
    Result<Component> shared = Component::share(made, kRole);
    kept_.push_back(made);
    return std::move(*shared);
  }
  const Component& part(std::string_view name, const json& options) {
    tn_options* given = nullptr;
    tn_component_ref* made = nullptr;
    EXPECT_TRUE(Status(services.options->create(ctx_, &given)).ok());
    EXPECT_TRUE(Status(services.options->parse(given, str(options.dump()))).ok());
    EXPECT_TRUE(Status(services.component->create(ctx_, str(kRole), str(cat("scheduler.", name)),
                                                  given, &made))
                    .ok());
    services.options->release(given);
    Result<Component> shared = Component::share(made, kRole);
    parts_.push_back(std::make_unique<Component>(std::move(*shared)));
    refs_[parts_.back().get()] = made;
    kept_.push_back(made);
    return *parts_.back();
  }
  void TearDown() override {
    parts_.clear();
    for (tn_component_ref* ref : kept_)
      services.component->release(ref);
  }

  std::vector<std::unique_ptr<Component>> parts_;
  std::map<const Component*, tn_component_ref*> refs_;
  std::vector<tn_component_ref*> kept_;
};

TEST_F(Schedules, EqualPyTorchsTraces) {
  json traces = golden("schedules.json")["traces"];
  ASSERT_GE(traces.size(), 9u);
  for (const json& trace : traces) {
    SCOPED_TRACE(trace["schedule"].get<std::string>() + trace["options"].dump());
    Result<Component> made = make(kRole, trace["schedule"].get<std::string>(), trace["options"]);
    ASSERT_TRUE(made.ok()) << text_of(made.status());
    ASSERT_GE(trace["values"].size(), 33u);
    for (size_t step = 0; step < trace["values"].size(); ++step) {
      double want = trace["values"][step];
      EXPECT_NEAR(value(*made, step), want, 1e-14 + 1e-12 * std::abs(want)) << "step " << step;
    }
  }
}

TEST_F(Schedules, EqualTheirClosedForms) {
  Component constant = schedule("constant", {{"base", 0.3}});
  Component linear = schedule("linear", {{"from", 2}, {"to", -1}, {"steps", 12}});
  Component power = schedule("polynomial", {{"base", 1}, {"end", 0.1}, {"power", 2}, {"steps", 9}});
  Component cosine = schedule("cosine", {{"base", 3}, {"end", 1}, {"steps", 20}});
  for (uint64_t step = 0; step < 40; ++step) {
    auto s = static_cast<double>(step);
    EXPECT_EQ(value(constant, step), 0.3);
    EXPECT_DOUBLE_EQ(value(linear, step), 2 - 3 * std::min(s / 12, 1.0));
    EXPECT_NEAR(value(power, step), 0.1 + 0.9 * std::pow(1 - std::min(s / 9, 1.0), 2), 1e-15);
    EXPECT_NEAR(value(cosine, step), 2 + std::cos(std::numbers::pi * std::min(s / 20, 1.0)), 1e-15);
  }
}

// Zhu & Gupta, equation 1: s_t = s_f + (s_i - s_f)(1 - (t - t_0) / (n dt))^3, changed each dt.
TEST_F(Schedules, SparsityFollowsTheCubicLaw) {
  Component cubic =
      schedule("cubic", {{"from", 0.1}, {"end", 0.8}, {"start", 10}, {"every", 5}, {"steps", 50}});
  for (uint64_t step = 0; step < 80; ++step) {
    double t = step < 10 ? 0 : static_cast<double>((step - 10) / 5 * 5);
    double want = step >= 60 ? 0.8 : 0.8 - 0.7 * std::pow(1 - t / 50, 3);
    EXPECT_NEAR(value(cubic, step), want, 1e-15) << "step " << step;
  }
}

// The figures of arXiv 2010.13369 (theta 0.5, gamma 0.001).
TEST_F(Schedules, LayerDropKeepsTheShareOfThePaper) {
  Component keep = schedule("exponential", {{"end", 0.5}, {"gamma", std::exp(-0.001)}});
  const std::pair<uint64_t, double> golden[] = {{0, 1.0},
                                                {1, 0.9995002499166875},
                                                {100, 0.9524187090179798},
                                                {1000, 0.6839397205857212},
                                                {5000, 0.5033689734995427},
                                                {10000, 0.5000226999648812}};
  for (auto [step, want] : golden)
    EXPECT_NEAR(value(keep, step), want, 1e-12) << "step " << step;
}

// The figures of DeepSpeed's fixed_linear and fixed_root (lengths 8 to 1024 in 15,000 steps).
TEST_F(Schedules, SequenceLengthsAreMultiples) {
  json range{{"from", 8}, {"to", 1024}, {"steps", 15000}, {"multiple", 8}};
  Component linear = schedule("linear", range);
  Component root = schedule("root", range);
  const std::pair<uint64_t, double> lines[] = {
      {0, 8}, {100, 8}, {1000, 72}, {7500, 512}, {14999, 1016}, {15000, 1024}, {99999, 1024}};
  for (auto [step, want] : lines)
    EXPECT_EQ(value(linear, step), want) << "step " << step;
  const std::pair<uint64_t, double> roots[] = {{1, 16}, {100, 88}, {1000, 264}, {7500, 720}};
  for (auto [step, want] : roots)
    EXPECT_EQ(value(root, step), want) << "step " << step;
}

TEST_F(Schedules, AMultipleIsNotRoundedToTheOneBelowIt) {
  Component tenths = schedule("linear", {{"from", 0}, {"to", 1}, {"steps", 10}, {"multiple", 0.1}});
  for (uint64_t step = 0; step <= 10; ++step)
    EXPECT_NEAR(value(tenths, step), 0.1 * static_cast<double>(step), 1e-12) << "step " << step;
  Component between = schedule("constant", {{"base", -0.25}, {"multiple", 0.1}});
  EXPECT_NEAR(value(between, 0), -0.3, 1e-12);
}

TEST_F(Schedules, AMultipleStaysWhereItIs) {
  Component tenths = schedule("linear", {{"from", 0}, {"to", 1}, {"steps", 10}, {"multiple", 0.1}});
  Component whole = schedule("linear", {{"from", 8}, {"to", 184}, {"steps", 22}, {"multiple", 8}});
  for (int step = 0; step <= 10; ++step)
    EXPECT_NEAR(value(tenths, static_cast<uint64_t>(step)), 0.1 * step, 1e-12) << "step " << step;
  for (int step = 0; step <= 22; ++step)
    EXPECT_EQ(value(whole, static_cast<uint64_t>(step)), 8 + 8 * step) << "step " << step;
}

// He et al., 3.1: of m warm-up steps, counted from 1, step i takes i / m.
TEST_F(Schedules, WarmUpRisesToTheFirstValueAndShiftsTheRest) {
  Component plain = schedule("cosine", {{"base", 0.2}, {"steps", 30}});
  Component warm = schedule("cosine", {{"base", 0.2}, {"warmup", 4}, {"steps", 30}});
  const double rise[] = {0.05, 0.1, 0.15, 0.2};
  for (uint64_t step = 0; step < 4; ++step)
    EXPECT_DOUBLE_EQ(value(warm, step), rise[step]);
  for (uint64_t step = 4; step < 40; ++step)
    EXPECT_EQ(value(warm, step), value(plain, step - 4));
}

// A short trial of a long recipe: nothing is left for the fall, and the rise is as it was.
TEST_F(Schedules, ARiseThatIsLongerThanTheTrainingIsStillARise) {
  for (const char* word : {"cosine", "linear", "polynomial"}) {
    json options{{"warmup", 50}};
    options[std::string(word) == "linear" ? "from" : "base"] = 2;
    if (std::string(word) == "linear") options["to"] = 0;
    Component warm = schedule(word, options);
    for (uint64_t total : {10, 50, 51})
      EXPECT_DOUBLE_EQ(value(warm, 9, total), 0.4) << word << " of " << total;
    EXPECT_EQ(value(warm, 50, 50), 0.0) << word;
  }
  // The first value of each: its highest by 25, and what it grows from.
  Component cycle = schedule("one_cycle", {{"base", 1}, {"warmup", 50}});
  Component cubic = schedule("cubic", {{"from", 0.2}, {"end", 0.5}, {"warmup", 50}});
  for (uint64_t total : {10, 50, 51}) {
    EXPECT_DOUBLE_EQ(value(cycle, 9, total), 0.2 / 25) << total;
    EXPECT_DOUBLE_EQ(value(cubic, 9, total), 0.2 * 0.2) << total;
  }
}

TEST_F(Schedules, TakeTheirLengthFromTheCallerWhenTheyHaveNone) {
  Component cosine = schedule("cosine", {{"base", 1}, {"warmup", 10}});
  EXPECT_EQ(value(cosine, 110, 110), 0.0);
  EXPECT_NEAR(value(cosine, 60, 110), 0.5, 1e-15);  // halfway through what is left after warming
  Result<double> lost = at(cosine, 60);
  ASSERT_FALSE(lost.ok());
  EXPECT_NE(text_of(lost.status()).find("option steps: expected how many steps"),
            std::string::npos);
}

TEST_F(Schedules, SequenceGoesFromOneToTheOther) {
  const Component& rise = part("linear", {{"from", 0}, {"to", 1}});
  const Component& fall = part("cosine", {{"base", 1}});
  Component both = compose("sequence", {{"at", 10}}, {{"first", &rise}, {"second", &fall}});
  for (uint64_t step = 0; step < 10; ++step)  // the first has `at` steps
    EXPECT_DOUBLE_EQ(value(both, step, 30), static_cast<double>(step) / 10);
  EXPECT_EQ(value(both, 10, 30), 1.0);
  EXPECT_NEAR(value(both, 20, 30), 0.5, 1e-15);
  EXPECT_EQ(value(both, 30, 30), 0.0);
}

TEST_F(Schedules, ProductAndWarmUpTakeAnySchedule) {
  const Component& drops = part("step", {{"every", 10}, {"gamma", 0.5}});
  const Component& falls = part("linear", {{"from", 4}, {"to", 0}, {"steps", 40}});
  Component product = compose("product", json::object(), {{"first", &drops}, {"second", &falls}});
  EXPECT_DOUBLE_EQ(value(product, 20), 0.25 * 2);
  Component warm = compose("warmup", {{"warmup", 5}}, {{"schedule", &falls}});
  EXPECT_DOUBLE_EQ(value(warm, 0), 0.8);
  EXPECT_DOUBLE_EQ(value(warm, 25), 2);
}

TEST_F(Schedules, AreFunctionsOfTheStepAlone) {
  Component one = schedule("one_cycle", {{"steps", 100}});
  Component other = schedule("one_cycle", {{"steps", 100}});
  std::vector<double> forward, backward(100);
  for (uint64_t step = 0; step < 100; ++step)
    forward.push_back(value(one, step));
  for (uint64_t step = 100; step-- > 0;)
    backward[step] = value(other, step);
  EXPECT_EQ(std::memcmp(forward.data(), backward.data(), 100 * sizeof(double)), 0);
}

// A program's own function as a component, inside one of a plugin.
TEST_F(Schedules, ALentScheduleIsAComponentLikeAnyOther) {
  static int destroyed = 0;
  destroyed = 0;
  static const tn_schedule table{
      sizeof table, 1, [](void* self, uint64_t step, uint64_t, double* out) -> tn_status* {
        *out = *static_cast<double*>(self) * static_cast<double>(step);
        return nullptr;
      }};
  double slope = 3;
  tn_component_ref* lent = nullptr;
  ASSERT_TRUE(Status(services.component->lend(
                         ctx_, str(kRole), str("script"), &table, &slope,
                         [](void*) { ++destroyed; }, &lent))
                  .ok());
  {
    Result<Component> shared = Component::share(lent, kRole);
    ASSERT_TRUE(shared.ok());
    EXPECT_EQ(shared->id(), "script");
    refs_[&*shared] = lent;
    const Component& half = part("constant", {{"base", 0.5}});
    Component product =
        compose("product", json::object(), {{"first", &*shared}, {"second", &half}});
    EXPECT_EQ(value(product, 4), 6);
    services.component->release(lent);
    EXPECT_EQ(destroyed, 0);
    EXPECT_EQ(value(product, 6), 9);
    TearDown();
    kept_.clear();
  }
  EXPECT_EQ(destroyed, 1);

  tn_schedule broken{3, 1, nullptr};
  Status refused(
      services.component->lend(ctx_, str(kRole), str("broken"), &broken, nullptr, nullptr, &lent));
  EXPECT_NE(text_of(std::move(refused)).find("struct_size"), std::string::npos);
  EXPECT_EQ(lent, nullptr);
}

TEST_F(Schedules, RefuseWrongOptions) {
  const std::tuple<const char*, json, const char*> wrong[] = {
      {"cosine", {{"bse", 1}}, "did you mean 'base'?"},
      {"cosine", {{"warmup", -1}}, "option warmup"},
      {"cosine", {{"base", "high"}}, "option base: expected a number"},
      {"step", json::object(), "option every"},
      {"step", {{"every", 0}}, "option every"},
      {"multistep", {{"milestones", {5, 5}}}, "expected rising steps"},
      {"multistep", {{"milestones", {-1}}}, "expected rising steps"},
      {"one_cycle", {{"rise", 1}}, "option rise"},
      {"one_cycle", {{"shape", "cosine"}}, "expected one of cos, linear"},
      {"product", json::object(), "option first"},
      {"warmup", {{"schedule", "metrics.accuracy"}}, "option schedule"},
  };
  for (const auto& [name, options, message] : wrong) {
    std::string got = refusal(kRole, cat("scheduler.", name), options);
    EXPECT_NE(got.find(message), std::string::npos) << name << options << ": " << got;
  }
  Component cycle = schedule("one_cycle", {{"steps", 1}});
  EXPECT_FALSE(at(cycle, 0).ok());
  Component large = schedule("constant", {{"base", 1e308}, {"warmup", 2}, {"warmup_from", 0}});
  EXPECT_TRUE(at(large, 0).ok());
  Component growing = schedule("step", {{"every", 1}, {"gamma", 10}});
  Result<double> infinite = at(growing, 400);
  ASSERT_FALSE(infinite.ok());
  EXPECT_NE(text_of(infinite.status()).find("expected a finite number"), std::string::npos);
}

}  // namespace
}  // namespace tenon::test
