// SPDX-License-Identifier: Apache-2.0
// Losses of several vectors a sample, against tests/golden/contrastive.json.
#include "tenon/role/loss.h"

#include "training_session.hpp"

namespace tenon::test {
namespace {

class Contrastive : public TrainingTest {
 protected:
  Result<OwnedGraph> build(std::string_view id,
                           const json& options,
                           size_t count,
                           bool has_target) {
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->create(ctx_, &raw));
    OwnedGraph graph = OwnedGraph::take(raw);
    TN_TRY(edit, Edit::begin(raw));
    std::vector<tn_value_id> predictions, targets;
    for (size_t i = 0; i < count; ++i) {
      TN_TRY(x, edit.input(cat("x", i), Type(TN_F32, {5, 3})));
      predictions.push_back(x.id);
    }
    if (has_target) {
      TN_TRY(target, edit.input("target", Type(TN_I64, {5})));
      targets.push_back(target.id);
    }
    TN_TRY(loss, make("tenon.loss/1", id, options));
    tn_objective objective{};
    objective.struct_size = sizeof objective;
    objective.n_predictions = predictions.size();
    objective.predictions = predictions.data();
    objective.n_targets = targets.size();
    objective.targets = targets.data();
    tn_value_id made = 0;
    TN_CHECK(loss.table<tn_loss>()->build(loss.self(), edit.raw, &objective, &made));
    TN_CHECK(edit.output("loss", edit.value(made)));
    TN_CHECK(edit.commit());
    return graph;
  }
  std::string refused(size_t count, bool has_target) {
    auto graph = build("trainer.triplet", json::object(), count, has_target);
    return graph.ok() ? "" : text_of(graph.status());
  }
};

TEST_F(Contrastive, LossesAndGradientsArePyTorchs) {
  const json all = golden("contrastive.json");
  for (const json& one : all["cases"]) {
    SCOPED_TRACE(cat(one["loss"].get<std::string>(), one["options"].dump()));
    const size_t count = one["predictions"].size();
    auto graph = build(one["loss"].get<std::string>(), one["options"], count, false);
    ASSERT_TRUE(graph.ok()) << text_of(graph.status());
    tn_options* options = nullptr;
    json wrt = json::array();
    for (size_t i = 0; i < count; ++i)
      wrt.push_back(cat("x", i));
    ASSERT_EQ(text_of(Status(services.options->create(ctx_, &options))), "");
    ASSERT_EQ(text_of(Status(services.options->parse(options, str(json{{"wrt", wrt}}.dump())))),
              "");
    tn_graph* step = nullptr;
    ASSERT_EQ(text_of(Status(tenon_apply(session_, graph->get(), str("autodiff.value_and_grad"),
                                         options, nullptr, nullptr, &step))),
              "");
    services.options->release(options);
    OwnedGraph owned = OwnedGraph::take(step);
    tn_plan* plan = nullptr;
    ASSERT_EQ(
        text_of(Status(tenon_compile(session_, step, str(R"({"backend": "reference"})"), &plan))),
        "");
    std::vector<Tensor> tensors;
    std::vector<DLTensor> views;
    std::vector<const DLTensor*> inputs;
    for (const json& numbers : one["predictions"])
      tensors.push_back(*Tensor::of<float>(ctx_, TN_F32, std::vector<int64_t>{5, 3},
                                           numbers.get<std::vector<float>>()));
    for (const Tensor& tensor : tensors)
      views.push_back(tensor.dl());
    for (const DLTensor& view : views)
      inputs.push_back(&view);
    Collected results(ctx_);
    ASSERT_EQ(text_of(Status(tenon_run(plan, inputs.data(), inputs.size(), &results.raw, nullptr))),
              "");
    services.eval->release(plan);
    EXPECT_NEAR(results.numbers<float>(0)[0], one["value"].get<double>(), 2e-6);
    for (size_t i = 0; i < count; ++i)
      EXPECT_THAT(results.numbers<float>(i + 1),
                  testing::Pointwise(testing::FloatNear(2e-5f),
                                     one["gradients"][i].get<std::vector<float>>()));
  }
}

TEST_F(Contrastive, WhatIsMissingIsNamed) {
  EXPECT_THAT(refused(2, false),
              HasSubstr("expected a model with 3 outputs (anchor, positive, negative), got 2"));
  EXPECT_THAT(refused(3, true), HasSubstr("target target: expected none"));
}

}  // namespace
}  // namespace tenon::test
