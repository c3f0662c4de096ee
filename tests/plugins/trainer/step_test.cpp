// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

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

TEST_F(Trainer, ParametersAndSlotsBecomeStates) {
  auto graph = step_of(kBowl, {{"momentum", 0.9}}, "trainer.sgd");
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  std::vector<std::string> states;
  for (Value value : graph->view().list(TN_LIST_STATES))
    states.emplace_back(value.name());
  EXPECT_THAT(states, ElementsAre("x/momentum_buffer", "x"));
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
  for (const char* id : {"trainer.sgd", "trainer.adamw", "trainer.lamb", "trainer.lion"}) {
    EXPECT_THAT(failure(kBowl, id, {{"no_decay", {"x", "bias*"}}}),
                HasSubstr("option no_decay: no parameter fits 'bias*'"));
    EXPECT_EQ(failure(kBowl, id, {{"no_decay", "?"}}), "");
  }
  EXPECT_THAT(refusal("tenon.optimizer/1", "trainer.sgd", {{"nesterov", true}}),
              HasSubstr("expected a momentum above 0"));
  EXPECT_THAT(refusal("tenon.optimizer/1", "trainer.adamw", {{"beta1", 1}}), HasSubstr("beta1"));
}

}  // namespace
}  // namespace tenon::test
