// SPDX-License-Identifier: Apache-2.0
#include "tenon/role/loss.h"

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;
using testing::Pointwise;

struct Case {
  std::vector<int64_t> shape, target_shape;
  uint32_t target_dtype = TN_I64;
};

class Loss : public PluginTest {
 protected:
  // prediction = op(x), or x itself when op is empty; then the loss of (prediction, target).
  Result<OwnedGraph> build(std::string_view id,
                           const json& options,
                           const Case& of,
                           std::string_view op = "") {
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->create(ctx_, &raw));
    OwnedGraph graph = OwnedGraph::take(raw);
    TN_TRY(edit, Edit::begin(raw));
    TN_TRY(x, edit.input("x", Type(TN_F32, of.shape)));
    TN_TRY(target, edit.input("target", Type(of.target_dtype, of.target_shape)));
    Value prediction = x;
    if (!op.empty()) {
      TN_TRY(made, edit.op(op, {x}, {{"axis", 1}}));
      prediction = made;
    }
    TN_TRY(loss, make("tenon.loss/1", id, options));
    tn_objective objective{};
    objective.struct_size = sizeof objective;
    objective.n_inputs = objective.n_predictions = objective.n_targets = 1;
    objective.inputs = &x.id;
    objective.predictions = &prediction.id;
    objective.targets = &target.id;
    tn_value_id made = 0;
    TN_CHECK(loss.table<tn_loss>()->build(loss.self(), edit.raw, &objective, &made));
    TN_CHECK(edit.output("loss", edit.value(made)));
    TN_CHECK(edit.commit());
    return graph;
  }
  std::string failure(std::string_view id, const json& options, const Case& of) {
    auto graph = build(id, options, of);
    return graph.ok() ? "" : text_of(graph.status());
  }

  // The loss and its gradient by x.
  std::pair<double, std::vector<float>> run(const OwnedGraph& graph,
                                            const Tensor& x,
                                            const Tensor& target) {
    tn_graph* step = nullptr;
    EXPECT_EQ(text_of(Status(tenon_apply(session_, graph.get(), str("autodiff.value_and_grad"),
                                         nullptr, nullptr, nullptr, &step))),
              "");
    OwnedGraph owned = OwnedGraph::take(step);
    tn_plan* plan = nullptr;
    EXPECT_EQ(text_of(Status(tenon_compile(session_, step, str(""), &plan))), "");
    DLTensor views[] = {x.dl(), target.dl()};
    const DLTensor* in[] = {&views[0], &views[1]};
    Collected results(ctx_);
    EXPECT_EQ(text_of(Status(tenon_run(plan, in, 2, &results.raw, nullptr))), "");
    services.eval->release(plan);
    return {results.numbers<float>(0)[0], results.numbers<float>(1)};
  }
  template <class T>
  Tensor tensor(uint32_t dtype, const std::vector<int64_t>& shape, const json& numbers) {
    return *Tensor::of<T>(ctx_, dtype, shape, numbers.get<std::vector<T>>());
  }
};

TEST_F(Loss, ValuesAndGradientsArePyTorchs) {
  json cases = golden("losses.json")["cases"];
  for (const json& one : cases) {
    SCOPED_TRACE(one["loss"].get<std::string>() + one["options"].dump() +
                 one["target_shape"].dump());
    Case of{one["shape"], one["target_shape"], one["target_is_float"] ? TN_F32 : TN_I64};
    auto graph = build(one["loss"].get<std::string>(), one["options"], of);
    ASSERT_TRUE(graph.ok()) << text_of(graph.status());
    Tensor target = one["target_is_float"]
                        ? tensor<float>(TN_F32, of.target_shape, one["target"])
                        : tensor<int64_t>(TN_I64, of.target_shape, one["target"]);
    auto [value, gradient] =
        run(*graph, tensor<float>(TN_F32, of.shape, one["prediction"]), target);
    EXPECT_NEAR(value, one["value"].get<double>(), 1e-6);
    EXPECT_THAT(gradient,
                Pointwise(testing::FloatNear(1e-6f), one["gradient"].get<std::vector<float>>()));
  }
}

TEST_F(Loss, AFinalSoftmaxIsTrainedOnItsLogits) {
  Case of{{2, 3}, {2}};
  auto graph = build("trainer.cross_entropy", {}, of, "Softmax");
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  // log(softmax) of these would be log(0) = -infinity in float32.
  auto [value, gradient] = run(*graph, tensor<float>(TN_F32, {2, 3}, {0, 200, 0, 200, 0, 0}),
                               tensor<int64_t>(TN_I64, {2}, {0, 0}));
  EXPECT_FLOAT_EQ(value, 100);
  EXPECT_FLOAT_EQ(gradient[0], -0.5f);
}

TEST_F(Loss, OnlyIgnoredSamplesLoseNothing) {
  auto graph = build("trainer.cross_entropy", {{"ignore_index", -1}}, {{2, 3}, {2}});
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  auto [value, gradient] = run(*graph, tensor<float>(TN_F32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                               tensor<int64_t>(TN_I64, {2}, {-1, -1}));
  EXPECT_EQ(value, 0);
  EXPECT_THAT(gradient, testing::Each(0));
}

TEST_F(Loss, OneNumberASampleMayComeAsAColumn) {
  auto graph = build("trainer.mse", {}, {{2, 1}, {2}, TN_F32});
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  auto [value, gradient] =
      run(*graph, tensor<float>(TN_F32, {2, 1}, {1, 2}), tensor<float>(TN_F32, {2}, {0, 4}));
  EXPECT_FLOAT_EQ(value, 2.5);
}

TEST_F(Loss, NodesStayInFloat32UnderAutocast) {
  auto graph = build("trainer.cross_entropy", {}, {{2, 3}, {2}});
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  for (Node node : graph->view().nodes()) {
    tn_any note{};
    EXPECT_EQ(text_of(Status(services.graph->note(graph->get(), node.id, str("cast"), &note))), "");
    EXPECT_EQ(tenon::text_of(note), "fp32") << node.type();
  }
}

TEST_F(Loss, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(failure("trainer.cross_entropy", {}, {{2, 3}, {3}}),
              HasSubstr("target target: expected int64[2] for prediction float32[2, 3], got "
                        "int64[3]"));
  EXPECT_THAT(failure("trainer.cross_entropy", {}, {{2, 3}, {2, 4}, TN_F32}),
              HasSubstr("expected a share of each class, as float32[2, 3]"));
  EXPECT_THAT(failure("trainer.cross_entropy", {{"axis", 2}}, {{2, 3}, {2}}),
              HasSubstr("expected classes on axis 2"));
  EXPECT_THAT(failure("trainer.mse", {}, {{2, 3}, {2, 4}, TN_F32}),
              HasSubstr("expected the shape of prediction x, float32[2, 3], got float32[2, 4]"));
  EXPECT_THAT(failure("trainer.kl", {}, {{2, 3}, {2}}), HasSubstr("expected floats of the shape"));
  EXPECT_THAT(refusal("tenon.loss/1", "trainer.cross_entropy", {{"label_smoothing", 1}}),
              HasSubstr("label_smoothing"));
}

}  // namespace
}  // namespace tenon::test
