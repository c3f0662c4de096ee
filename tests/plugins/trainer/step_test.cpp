// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

// The gradient of x0^2 + 10 x1^2 + 0.1 x2^2 written out, as autodiff would leave it.
constexpr std::string_view kBowl = R"(graph {
  input %x: f64[3]
  constant %slope: f64[3] = [2, 20, 0.2]
  constant %half: f64[] = [0.5]
  constant %axis: i64[1] = [0]
  %g: f64[3] = Mul(%x, %slope) @g
  %gx: f64[3] = Mul(%g, %x) @gx
  %sum: f64[] = ReduceSum(%gx, %axis) {keepdims = 0} @sum
  %loss: f64[] = Mul(%sum, %half) @loss
  output loss = %loss
  output "grad/x" = %g
}
)";

class Trainer : public PluginTest {
 protected:
  Result<OwnedGraph> parse(std::string_view text) {
    tn_graph* raw = nullptr;
    TN_CHECK(Status(services.graph->parse(ctx_, str(text), &raw)));
    return OwnedGraph::take(raw);
  }
  Result<OwnedGraph> step_of(std::string_view text, const json& optimizer, std::string_view id) {
    TN_TRY(graph, parse(text));
    TN_TRY(made, make("tenon.optimizer/1", id, optimizer));
    optimizer_ = std::move(made);
    tn_options* options = nullptr;
    TN_CHECK(Status(services.options->create(ctx_, &options)));
    Status set(services.options->set(options, str("optimizer"), any_component()));
    tn_graph* out = nullptr;
    Status applied(
        tenon_apply(session_, graph.get(), str("trainer.step"), options, nullptr, nullptr, &out));
    services.options->release(options);
    TN_CHECK(std::move(set));
    TN_CHECK(std::move(applied));
    return OwnedGraph::take(out);
  }
  // The parameter after five steps from (1, -2, 3), and the first loss.
  std::vector<double> five(std::string_view id, const json& options, float rate) {
    auto graph = step_of(kBowl, options, id);
    if (!graph.ok()) {
      ADD_FAILURE() << text_of(graph.status());
      return {};
    }
    tn_plan* plan = nullptr;
    EXPECT_EQ(text_of(Status(tenon_compile(session_, graph->get(), str(""), &plan))), "");
    auto start =
        *Tensor::of<double>(ctx_, TN_F64, std::vector<int64_t>{3}, std::vector<double>{1, -2, 3});
    DLTensor x = start.dl();
    EXPECT_EQ(text_of(Status(services.eval->state_set(plan, str("x"), &x))), "");
    auto rate_tensor =
        *Tensor::of<float>(ctx_, TN_F32, std::vector<int64_t>{}, std::vector<float>{rate});
    DLTensor rate_view = rate_tensor.dl();
    const DLTensor* inputs[] = {&rate_view};
    for (int i = 0; i < 5; ++i) {
      Collected results(ctx_);
      EXPECT_EQ(text_of(Status(tenon_run(plan, inputs, 1, &results.raw, nullptr))), "");
      if (i == 0) {
        EXPECT_DOUBLE_EQ(results.numbers<double>(0)[0], 41.9);
      }
    }
    auto after = *Tensor::zeros(ctx_, TN_F64, std::vector<int64_t>{3});
    DLTensor out = after.dl();
    EXPECT_EQ(text_of(Status(services.eval->state_get(plan, str("x"), &out))), "");
    services.eval->release(plan);
    const double* data = after.data<double>();
    return {data, data + 3};
  }
  std::string failure(std::string_view text,
                      std::string_view id = "trainer.sgd",
                      const json& options = json::object()) {
    auto graph = step_of(text, options, id);
    return graph.ok() ? "" : text_of(graph.status());
  }

 private:
  tn_any any_component() { return {TN_ANY_COMPONENT, 0, 1, {.p = optimizer_.raw()}}; }
  Component optimizer_;
};

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_THAT(got[i], DoubleNear(wanted[i], 2e-7)) << i;
}

TEST_F(Trainer, SgdFollowsTheGradient) {
  expect_near(five("trainer.sgd", {}, 0.01f), {0.9039207968, -0.65536, 2.9701197602399043});
}

TEST_F(Trainer, SgdKeepsMomentum) {
  expect_near(five("trainer.sgd", {{"momentum", 0.9}}, 0.01f),
              {0.7493164928000001, 1.1608400000000003, 2.921506856572704});
}

TEST_F(Trainer, SgdLooksAheadAndDecays) {
  expect_near(
      five("trainer.sgd", {{"momentum", 0.9}, {"nesterov", true}, {"weight_decay", 1e-4}}, 0.01f),
      {0.6898917894442621, 0.8314364830865524, 2.8997916786183695});
}

TEST_F(Trainer, AdamIsAdamWWithoutDecay) {
  expect_near(five("trainer.adamw", {{"weight_decay", 0}}, 0.001f),
              {0.995000436052392, -1.9950002173221726, 2.9950001448102936});
}

TEST_F(Trainer, AdamWDecaysApartFromTheGradient) {
  expect_near(five("trainer.adamw", json::object(), 0.001f),
              {0.9949505414313422, -1.9949003236774945, 2.994850252157748});
}

TEST_F(Trainer, VectorsCanBeLeftWithoutDecay) {
  json options{{"decay_vectors", false}};
  expect_near(five("trainer.adamw", options, 0.001f),
              {0.995000436052392, -1.9950002173221726, 2.9950001448102936});
}

TEST_F(Trainer, ParametersAndSlotsBecomeStates) {
  auto graph = step_of(kBowl, {{"momentum", 0.9}}, "trainer.sgd");
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  std::vector<std::string> states;
  for (Value value : graph->view().list(TN_LIST_STATES))
    states.emplace_back(value.name());
  EXPECT_THAT(states, ElementsAre("x/momentum", "x"));
  EXPECT_EQ(graph->view().output_name(0), "loss");
  EXPECT_EQ(graph->view().input_name(1), "learning_rate");
}

TEST_F(Trainer, AConstantBecomesAState) {
  std::string text(kBowl);
  text.replace(text.find("input %x: f64[3]"), 16, "constant %x: f64[3] = [1, -2, 3]");
  auto graph = step_of(text, json::object(), "trainer.sgd");
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  ASSERT_EQ(graph->view().list(TN_LIST_STATES).size(), 1u);
  EXPECT_EQ(graph->view().list(TN_LIST_STATES)[0].name(), "x");
}

TEST_F(Trainer, WhatIsMissingIsNamed) {
  std::string text(kBowl);
  text.replace(text.find("\"grad/x\""), 8, "other");
  EXPECT_THAT(failure(text), HasSubstr("expected outputs called grad/NAME, got none"));
  text = kBowl;
  text.replace(text.find("\"grad/x\""), 8, "\"grad/z\"");
  EXPECT_THAT(failure(text), HasSubstr("grad/z: no input or constant has this name"));
  for (const char* id : {"trainer.sgd", "trainer.adamw"}) {
    EXPECT_THAT(failure(kBowl, id, {{"no_decay", {"x", "bias*"}}}),
                HasSubstr("option no_decay: no parameter fits bias*"));
    EXPECT_EQ(failure(kBowl, id, {{"no_decay", "?"}}), "");
  }
  EXPECT_THAT(refusal("tenon.optimizer/1", "trainer.sgd", {{"nesterov", true}}),
              HasSubstr("expected a momentum above 0"));
  EXPECT_THAT(refusal("tenon.optimizer/1", "trainer.adamw", {{"beta1", 1}}), HasSubstr("beta1"));
}

}  // namespace
}  // namespace tenon::test
