// SPDX-License-Identifier: Apache-2.0
// Products with float8 operands and delayed scaling, against tests/golden/fp8.json.
#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

class Fp8 : public PassTest {
 protected:
  void TearDown() override {
    if (plan_) services.eval->release(plan_);
    PassTest::TearDown();
  }
  // loss = mean((relu(x w1) w2 - t)^2), with gradients by w1 and w2.
  void build_step(const json& weights) {
    tn_graph* empty = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &empty))), "");
    model_ = OwnedGraph::take(empty);
    build([&](EditView edit) {
      auto constant = [&](const char* name, std::vector<int64_t> shape) {
        return *edit.constant<float>(TN_F32, shape, weights[name].get<Floats>(), name);
      };
      Value x = input(edit, "x", {4, 3});
      Value z = node(edit, "MatMul", {x, constant("w1", {3, 5})}, "z");
      Value h = node(edit, "Relu", {z}, "h");
      Value y = node(edit, "MatMul", {h, constant("w2", {5, 2})}, "y");
      Value d = node(edit, "Sub", {y, constant("t", {4, 2})}, "d");
      Value square = node(edit, "Mul", {d, d}, "square");
      Value loss = node(edit, "ReduceMean", {square}, "loss", {{"keepdims", 0}});
      ASSERT_EQ(text_of(edit.output("loss", loss)), "");
    });
    ASSERT_EQ(apply("autodiff.value_and_grad", {{"wrt", {"w1", "w2"}}}), "");
    model_ = std::move(result_);
  }
  void compile() {
    if (plan_) services.eval->release(std::exchange(plan_, nullptr));
    Status compiled(services.eval->compile(ctx_, result_.get(), nullptr, 0,
                                           str("{\"backend\": \"reference\"}"), &plan_));
    ASSERT_EQ(text_of(std::move(compiled)), "");
  }
  std::vector<Floats> step(const Floats& x) {
    DenseView tensor(TN_F32, std::vector<int64_t>{4, 3}, x.data());
    const DLTensor* in[] = {tensor.get()};
    Collected out(ctx_);
    EXPECT_EQ(text_of(Status(services.eval->run(plan_, in, 1, &out.raw, nullptr))), "");
    std::vector<Floats> found;
    for (size_t i = 0; i < out.tensors.size(); ++i)
      found.push_back(out.numbers<float>(i));
    return found;
  }
  // Scales are a state of 0 until there is a first one.
  float scale(const std::string& name) {
    float value = 0;
    DenseView tensor(TN_F32, std::vector<int64_t>{}, &value);
    EXPECT_EQ(
        text_of(Status(services.eval->state_get(plan_, str(name + "/fp8_scale"), tensor.get()))),
        "");
    return value;
  }
  // Names of the tensors that have a scale, by those of the golden file.
  std::map<std::string, std::string> tensors() {
    std::map<std::string, std::string> out;
    std::vector<std::string> cotangents{"dz", "dy"};  // made from the loss backwards: dy first
    for (const json& one : report_["tensors"]) {
      std::string name = one["name"];
      const bool is_forward = name == "x" || name == "w1" || name == "h" || name == "w2";
      if (is_forward) out[name] = name;
      if (is_forward || cotangents.empty()) continue;
      out[cotangents.back()] = name;
      cotangents.pop_back();
    }
    return out;
  }

  tn_plan* plan_ = nullptr;
};

TEST_F(Fp8, FollowsTransformerEnginesDelayedScaling) {
  const json all = golden("fp8.json");
  for (const json& one : all["cases"]) {
    SCOPED_TRACE(one["options"].dump());
    ASSERT_NO_FATAL_FAILURE(build_step(one["weights"]));
    ASSERT_EQ(apply("precision.fp8", one["options"]), "");
    EXPECT_EQ(report_["products"].size(), 5u);
    ASSERT_EQ(report_["tensors"].size(), 6u) << report_.dump();
    std::map<std::string, std::string> names = tensors();
    ASSERT_NO_FATAL_FAILURE(compile());
    for (size_t t = 0; t < one["steps"].size(); ++t) {
      SCOPED_TRACE(t);
      const json& wanted = one["steps"][t];
      std::vector<Floats> got = step(wanted["x"].get<Floats>());
      ASSERT_EQ(got.size(), 3u);
      double size = std::abs(wanted["loss"].get<double>());
      EXPECT_NEAR(got[0][0], wanted["loss"].get<double>(), 1e-6 * size);
      for (size_t i : {1u, 2u}) {
        Floats gradient = wanted[i == 1 ? "grad/w1" : "grad/w2"].get<Floats>();
        float most = 1e-3f;
        for (float g : gradient)
          most = std::max(most, std::abs(g));
        EXPECT_THAT(got[i], testing::Pointwise(testing::FloatNear(1e-6f * most), gradient));
      }
      for (const auto& [name, value] : wanted["scales"].items())
        EXPECT_FLOAT_EQ(scale(names.at(name)), value.get<float>()) << name;
    }
  }
}

TEST_F(Fp8, WhatIsInfiniteIsNotRecorded) {
  json one = golden("fp8.json")["cases"][0];
  build_step(one["weights"]);
  ASSERT_EQ(apply("precision.fp8", {{"history", 1}}), "");
  compile();
  Floats x = one["steps"][0]["x"].get<Floats>();
  step(x);
  float before = scale("x");
  x[0] = std::numeric_limits<float>::infinity();
  step(x);
  EXPECT_EQ(scale("x"), before);
}

TEST_F(Fp8, AScaleIsNeverZero) {
  build_step(golden("fp8.json")["cases"][0]["weights"]);
  ASSERT_EQ(apply("precision.fp8", {{"margin", 64}}), "");
  compile();
  step(Floats(12, 1e30f));
  EXPECT_EQ(scale("x"), std::numeric_limits<float>::min());
}

TEST_F(Fp8, ProductsCanBeLeftAloneAndAreNamed) {
  build_step(golden("fp8.json")["cases"][0]["weights"]);
  ASSERT_EQ(apply("precision.fp8", {{"skip", "y"}}), "");
  EXPECT_EQ(report_["products"].size(), 4u);
  ASSERT_EQ(report_["left"].size(), 1u);
  EXPECT_EQ(report_["left"][0]["why"], "in the skip list (y)");
}

TEST_F(Fp8, AGraphWithoutGradientsIsRefused) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 2});
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {x, x}, "y"))), "");
  });
  EXPECT_THAT(apply("precision.fp8", json::object()),
              HasSubstr("apply autodiff.value_and_grad first"));
}

}  // namespace
}  // namespace tenon::test
