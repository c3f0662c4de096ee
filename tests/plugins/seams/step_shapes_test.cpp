// SPDX-License-Identifier: Apache-2.0
// A training run whose batches have several shapes: one compiled step for each, on the same states.
#include <gmock/gmock.h>

#include "seams_test.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

// y = mean over the steps of x, times w: of any length.
constexpr std::string_view kModel = R"(graph {
  input %x: f32[n, t, 2]
  constant %w: f32[2, 1] = [0.5, -0.5]
  constant %steps: i64[1] = [1]
  %m: f32[n, 2] = ReduceMean(%x, %steps) {keepdims = 0} @mean
  %y: f32[n, 1] = MatMul(%m, %w) @product
  output y = %y
}
)";
constexpr int64_t kSamples = 8, kSteps = 6;
constexpr double kRate = 0.25;
const std::vector<double> kLengths = {3, 8, 5};

// The same by hand, in double: the mean squared error of all samples, cut to these lengths in turn.
std::vector<double> by_hand() {
  std::vector<double> w = {0.5, -0.5};
  for (int64_t step = 0; step < kSteps; ++step) {
    auto length = static_cast<int64_t>(kLengths[static_cast<size_t>(step) % kLengths.size()]);
    std::vector<double> gradient = {0, 0};
    for (int64_t s = 0; s < kSamples; ++s) {
      double mean[2] = {0, 0};
      for (int64_t t = 0; t < length; ++t)
        for (int k = 0; k < 2; ++k)
          mean[k] += std::sin(1 + 3 * double(s) + 7 * double(t) + 11 * k) / double(length);
      double error = mean[0] * w[0] + mean[1] * w[1] - std::cos(double(s));
      for (size_t k = 0; k < 2; ++k)
        gradient[k] += 2 * error * mean[k] / kSamples;
    }
    for (size_t k = 0; k < 2; ++k)
      w[k] -= kRate * gradient[k];
  }
  return w;
}

class StepShapes : public SeamsTest {
 protected:
  std::vector<float> train(const std::string& backend, int shapes, json* report) {
    OwnedGraph model = parse(kModel);
    auto data = make("tenon.dataset/1", "seams.sequences", {{"samples", kSamples}, {"length", 8}});
    EXPECT_TRUE(data.ok()) << text_of(data.status());
    json options = {
        {"loss", "trainer.mse"},
        {"epochs", kSteps},
        {"batch", kSamples},
        {"rate", kRate},
        {"target", json::array({"y"})},
        {"step_shapes", shapes},
        {"backend", backend},
        {"curriculum", {{"buckets", 0}}},
        {"schedules", {{"sequence_length", {{"schedule", "seams.saw"}, {"values", kLengths}}}}}};
    auto trained = apply(model, "trainer.train", options, {{"data", &*data}}, report);
    EXPECT_TRUE(trained.ok()) << text_of(trained.status());
    return trained.ok() ? weight(*trained, "w") : std::vector<float>{};
  }
};

TEST_F(StepShapes, EachLengthHasAStepAndAllHaveTheSameStates) {
  std::vector<double> want = by_hand();
  for (const char* backend : {"reference", "onednn"}) {
    if (!make("tenon.backend/1", backend).ok()) continue;
    json report;
    std::vector<float> got = train(backend, 8, &report);
    ASSERT_EQ(got.size(), 2u) << backend;
    for (size_t k = 0; k < 2; ++k)
      EXPECT_NEAR(got[k], want[k], 1e-5) << backend;
    EXPECT_EQ(report["compiled"]["steps"], 3) << backend;
  }
}

TEST_F(StepShapes, FewerAreKeptAndCompiledAgain) {
  json all, one;
  std::vector<float> kept = train("reference", 8, &all), again = train("reference", 1, &one);
  EXPECT_EQ(kept, again);
  EXPECT_EQ(all["compiled"]["steps"], 3);
  EXPECT_EQ(one["compiled"]["steps"], kSteps);
}

// Padding that no sample of a batch needs is left out, and nothing else.
TEST_F(StepShapes, ABatchIsAsLongAsItsLongestSample) {
  std::string text(kModel);
  text.replace(text.find("ReduceMean"), 10, "ReduceSum");
  OwnedGraph model = parse(text);
  auto data = make("tenon.dataset/1", "seams.sequences",
                   {{"samples", kSamples}, {"length", 8}, {"padded", true}});
  ASSERT_TRUE(data.ok()) << text_of(data.status());
  json options = {{"loss", "trainer.mse"}, {"epochs", 3},      {"batch", 2},
                  {"rate", 0.05},          {"shuffle", false}, {"target", json::array({"y"})},
                  {"backend", "reference"}};
  json whole, fitted;
  auto slow = apply(model, "trainer.train", options, {{"data", &*data}}, &whole);
  options["curriculum"] = {{"fit", "x"}, {"buckets", 4}};
  auto fast = apply(model, "trainer.train", options, {{"data", &*data}}, &fitted);
  ASSERT_TRUE(slow.ok()) << text_of(slow.status());
  ASSERT_TRUE(fast.ok()) << text_of(fast.status());
  std::vector<float> want = weight(*slow, "w"), got = weight(*fast, "w");
  EXPECT_NE(want, weight(model, "w"));
  for (size_t k = 0; k < 2; ++k)
    EXPECT_NEAR(got[k], want[k], 1e-6);
  // Samples 0 and 1 are 2 steps long at most, 2 and 3 are 4 ...: whole buckets of 2.
  EXPECT_EQ(fitted["history"][0]["sequence_steps"], 2 * (2 + 4 + 6 + 8));
  EXPECT_EQ(fitted["compiled"]["steps"], 4);
  options["curriculum"] = {{"fit", "y"}};
  auto wrong = apply(model, "trainer.train", options, {{"data", &*data}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(text_of(wrong.status()), HasSubstr("fit: expected an input with an axis of 8"));
}

// Of the host's service itself.
TEST_F(StepShapes, APlanBesideAnotherHasItsStatesAndOutlivesIt) {
  auto counter = [&](std::string_view name, std::string_view type) {
    return parse(cat("graph {\n  input %x: f32[]\n  input %", name, ": ", type, "\n  %next: ", type,
                     " = Add(%", name, ", %x) @add\n  %y: ", type,
                     " = Mul(%next, %next) @square\n  output next = %next\n  output y = %y\n  "
                     "state %",
                     name, " -> %next\n}\n"));
  };
  OwnedGraph first = counter("count", "f32[]");
  Tensor two = tensor<float>(TN_F32, {}, {2});
  std::vector<DLTensor> inputs{two.dl()};
  Result<Plan> beside = Status(TN_INTERNAL, "none");
  {
    auto plan = Plan::compile(ctx_, first.view(), {}, R"({"backend": "reference"})");
    ASSERT_TRUE(plan.ok()) << text_of(plan.status());
    ASSERT_EQ(text_of(plan->run(inputs)), "");
    beside = plan->beside(ctx_, first.view());
    ASSERT_TRUE(beside.ok()) << text_of(beside.status());
    auto other = plan->beside(ctx_, counter("count", "f32[2]").view());
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.status().code(), TN_FAILED_PRECONDITION);
    EXPECT_THAT(text_of(other.status()), HasSubstr("count"));
  }
  ASSERT_EQ(text_of(beside->run(inputs)), "");
  EXPECT_EQ(*(*beside)[0].data<float>(), 16.0F) << "2 of the first plan, and 2";
}

}  // namespace
}  // namespace tenon::test
