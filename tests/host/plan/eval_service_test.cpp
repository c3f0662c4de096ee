// SPDX-License-Identifier: Apache-2.0
// Plans as the service makes and describes them.
#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

class EvalService : public PluginTest {
 protected:
  ~EvalService() override {
    if (plan_) services.eval->release(plan_);
    if (graph_) services.graph->release(graph_);
  }
  void parse(std::string_view text) {
    ASSERT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &graph_))), "");
  }
  std::string compile(std::vector<tn_value_id> taps = {},
                      std::string_view options = R"({"backend": "reference"})") {
    return text_of(Status(
        services.eval->compile(ctx_, graph_, taps.data(), taps.size(), str(options), &plan_)));
  }
  // Of a vector of two numbers.
  std::string run(Collected* results) {
    const DLTensor* inputs[] = {&x_};
    return text_of(Status(services.eval->run(plan_, inputs, 1, &results->raw, nullptr)));
  }

  float numbers_[2] = {-1, 2};
  int64_t shape_[1] = {2};
  DLTensor x_{numbers_, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape_, nullptr, 0};
  tn_graph* graph_ = nullptr;
  tn_plan* plan_ = nullptr;
};

TEST_F(EvalService, TapsStandBesideOutputsOfAnyName) {
  parse(R"(graph {
    input %x: f32[2]
    %r: f32[2] = Relu(%x) @relu
    %n: f32[2] = Neg(%r) @neg
    output tap0 = %n
    output tap2 = %r })");
  tn_value_id r = services.graph->find_value(graph_, str("r"));

  ASSERT_EQ(compile({r, r}), "");

  Collected results(ctx_);
  ASSERT_EQ(run(&results), "");
  ASSERT_EQ(results.tensors.size(), 4u);
  EXPECT_EQ(results.numbers<float>(0)[1], -2);
  EXPECT_EQ(results.numbers<float>(3)[1], 2);
}

TEST_F(EvalService, RefusesATapOfWhatStaysWithThePlan) {
  parse(R"(graph {
    input %x: f32[2]
    input %s: f32[2]
    %q: f32[2] = Add(%s, %x) @add
    output q = %q
    state %s -> %q })");

  EXPECT_THAT(compile({services.graph->find_value(graph_, str("s")),
                       services.graph->find_value(graph_, str("q"))}),
              HasSubstr("tap 1: q becomes a state, which stays with the plan"));
}

TEST_F(EvalService, DescribesAndProfilesNodesOfAnyName) {
  parse("graph { input %x: f32[2] %y: f32[2] = Relu(%x) @\"n\xff\\x0a\" output y = %y }");
  ASSERT_EQ(compile(), "");
  const DLTensor* inputs[] = {&x_};
  ASSERT_EQ(text_of(Status(services.eval->prepare(plan_, inputs, 1))), "");
  StringSink about, layers;

  EXPECT_EQ(text_of(Status(services.eval->describe(plan_, about.get()))), "");
  EXPECT_EQ(text_of(Status(services.eval->profile(plan_, inputs, 1, layers.get()))), "");

  const std::string shown = "n\xef\xbf\xbd\n";
  EXPECT_EQ(json::parse(about.text)["partitions"][0]["nodes"][0], shown);
  EXPECT_EQ(json::parse(layers.text)[0]["name"], shown);
}

TEST_F(EvalService, RefusesThreadsThatAreNoNumberAlsoWhereNoBackendHasAny) {
  parse("graph { input %x: f32[2] output y = %x }");
  for (const char* threads : {"-5", "\"many\"", "1.5"})
    EXPECT_THAT(compile({}, cat(R"({"backend": "reference", "threads": )", threads, "}")),
                HasSubstr("plan options: option threads: expected an integer >= 0, got "));

  EXPECT_EQ(compile({}, R"({"backend": "reference", "threads": 2})"), "");
}

TEST_F(EvalService, ABackendThatThereIsNotIsNamedWithItsOption) {
  parse("graph { input %x: f32[2] output y = %x }");

  EXPECT_THAT(compile({}, R"({"backend": ["reference", "onednnn"]})"),
              HasSubstr("option backend: component onednnn of role tenon.backend/1: not found"));
}

}  // namespace
}  // namespace tenon::test
