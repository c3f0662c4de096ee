// SPDX-License-Identifier: Apache-2.0
// The role tenon.kernel/1 and the backend kernels.host: a plan that names a kernel runs the places
// that its pattern fits by it, and says so.
#include <gmock/gmock.h>

#include "seams_test.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

// Two places; a third whose inner value is an output.
constexpr std::string_view kModel = R"(graph {
  input %x: f32[n, 3]
  constant %w: f32[3, 3] = [1, 0, -1, 0.5, 2, 0, 0, -1, 1]
  constant %s: f32[3] = [2, -1, 0.5]
  constant %t: f32[] = [0.25]
  constant %u: f32[3] = [1, 0, -1]
  %a: f32[n, 3] = Mul(%x, %s) @a
  %b: f32[n, 3] = Add(%a, %t) @b
  %c: f32[n, 3] = Relu(%b) @c
  %d: f32[n, 3] = MatMul(%c, %w) @d
  %e: f32[n, 3] = Mul(%s, %d) @e
  %f: f32[n, 3] = Add(%u, %e) @f
  %g: f32[n, 3] = Relu(%f) @g
  %h: f32[n, 3] = Mul(%g, %u) @h
  %i: f32[n, 3] = Add(%h, %s) @i
  %j: f32[n, 3] = Relu(%i) @j
  output y = %j
  output inner = %i
}
)";

class Kernel : public SeamsTest {
 protected:
  struct Ran {
    std::vector<std::vector<float>> outputs;
    json described, layers;
  };
  Ran run(std::string_view text, const json& options) {
    Ran out;
    OwnedGraph graph = parse(text);
    auto plan = Plan::compile(ctx_, graph.view(), {}, options.dump());
    EXPECT_TRUE(plan.ok()) << text_of(plan.status());
    if (!plan.ok()) return out;
    std::vector<float> x;
    for (int i = 0; i < 12; ++i)
      x.push_back(std::sin(static_cast<float>(i)));
    Tensor in = tensor<float>(TN_F32, {4, 3}, x);
    Status ran = plan->run(std::vector{in.dl()});
    EXPECT_EQ(text_of(ran), "");
    for (size_t i = 0; ran.ok() && i < plan->n_outputs(); ++i)
      out.outputs.push_back(numbers<float>((*plan)[i]));
    out.described = json::parse(plan->describe());
    DLTensor view = in.dl();
    const DLTensor* inputs[] = {&view};
    StringSink layers;
    EXPECT_EQ(text_of(Status(services.eval->profile(plan->raw(), inputs, 1, layers.get()))), "");
    out.layers = json::parse(layers.text, nullptr, false);
    return out;
  }
  static int count(const json& list, const char* key, const char* wanted) {
    int n = 0;
    for (const json& one : list)
      n += one.value(key, "") == wanted;
    return n;
  }
};

TEST_F(Kernel, RunsTheSitesOfItsPattern) {
  Ran plain = run(kModel, {{"backend", "reference"}});
  Ran fused = run(kModel, {{"backend", "reference"}, {"kernels", "seams.mul_add_relu"}});
  ASSERT_EQ(fused.outputs.size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    for (size_t k = 0; k < plain.outputs[i].size(); ++k)
      EXPECT_NEAR(fused.outputs[i][k], plain.outputs[i][k], 1e-6) << "output " << i;
  EXPECT_EQ(count(plain.layers, "kernel", "seams.mul_add_relu"), 0);
  EXPECT_EQ(count(fused.layers, "kernel", "seams.mul_add_relu"), 2) << fused.layers.dump(1);
  EXPECT_EQ(count(fused.layers, "backend", "kernels.host"), 2);
  EXPECT_EQ(count(fused.layers, "name", "a+b+c"), 1) << fused.layers.dump(1);
  EXPECT_EQ(count(fused.described["partitions"], "backend", "kernels.host"), 2);
  EXPECT_EQ(fused.described["backends"][0], "reference") << "the preferred one";
}

TEST_F(Kernel, JoinsTheBackendThatIsThere) {
  auto made = make("tenon.backend/1", "onednn");
  if (!made.ok()) GTEST_SKIP() << "no onednn";
  Ran plain = run(kModel, {{"backend", "reference"}});
  Ran fused =
      run(kModel, {{"backend", "onednn"}, {"kernels", json::array({"seams.mul_add_relu"})}});
  for (size_t i = 0; i < 2; ++i)
    for (size_t k = 0; k < plain.outputs[i].size(); ++k)
      EXPECT_NEAR(fused.outputs[i][k], plain.outputs[i][k], 1e-5);
  EXPECT_EQ(count(fused.layers, "kernel", "seams.mul_add_relu"), 2) << fused.layers.dump(1);
  EXPECT_EQ(fused.described["fallback_nodes"], json::array());
}

TEST_F(Kernel, SitesAreSoughtBehindThePassesOfTheBackend) {
  auto made = make("tenon.backend/1", "onednn");
  if (!made.ok()) GTEST_SKIP() << "no onednn";
  std::string text(kModel);
  const std::string add = "  %b: f32[n, 3] = Add(%a, %t) @b\n";
  text.replace(text.find(add), add.size(),
               "  %same: f32[n, 3] = Identity(%a) @same\n  %b: f32[n, 3] = Add(%same, %t) @b\n");

  Ran fused = run(text, {{"backend", "onednn"}, {"kernels", "seams.mul_add_relu"}});

  EXPECT_EQ(count(fused.layers, "kernel", "seams.mul_add_relu"), 2) << fused.layers.dump(1);
}

TEST_F(Kernel, WhatItRefusesRunsElsewhere) {
  std::string text(kModel);
  for (size_t at; (at = text.find("f32[")) != std::string::npos;)
    text.replace(at, 4, "f64[");
  OwnedGraph graph = parse(text);
  auto plan = Plan::compile(ctx_, graph.view(), {},
                            R"({"backend": "reference", "kernels": "seams.mul_add_relu"})");
  ASSERT_TRUE(plan.ok()) << text_of(plan.status());
  Tensor x = *Tensor::zeros(ctx_, TN_F64, std::vector<int64_t>{1, 3});
  EXPECT_EQ(text_of(plan->run(std::vector{x.dl()})), "");
  json described = json::parse(plan->describe());
  EXPECT_EQ(count(described["partitions"], "backend", "kernels.host"), 0);
}

TEST_F(Kernel, AnUnknownKernelIsNamed) {
  OwnedGraph graph = parse(kModel);
  auto plan = Plan::compile(ctx_, graph.view(), {}, R"({"kernels": "seams.mul_add_rel"})");
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(text_of(plan.status()), HasSubstr("seams.mul_add_rel"));
}

}  // namespace
}  // namespace tenon::test
