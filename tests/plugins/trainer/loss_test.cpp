// SPDX-License-Identifier: Apache-2.0
#include "tenon/role/loss.h"

#include <cmath>
#include <limits>
#include <set>

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
  int64_t n_lengths = 0;  // above 0: a second target, of frames that count
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
    std::vector<tn_value_id> targets{target.id};
    if (of.n_lengths > 0) {
      TN_TRY(lengths, edit.input("lengths", Type(TN_I64, {of.n_lengths})));
      targets.push_back(lengths.id);
    }
    Value prediction = x;
    if (!op.empty()) {
      std::vector<Attr> attrs;
      if (op != "Sigmoid") attrs.emplace_back("axis", 1);
      TN_TRY(made, edit.op(op, {x}, attrs));
      prediction = made;
    }
    TN_TRY(loss, make("tenon.loss/1", id, options));
    tn_objective objective{};
    objective.struct_size = sizeof objective;
    objective.n_inputs = objective.n_predictions = 1;
    objective.n_targets = targets.size();
    objective.inputs = &x.id;
    objective.predictions = &prediction.id;
    objective.targets = targets.data();
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
                                            const Tensor& target,
                                            const std::vector<int64_t>& lengths = {}) {
    tn_graph* step = nullptr;
    EXPECT_EQ(text_of(Status(tenon_apply(session_, graph.get(), str("autodiff.value_and_grad"),
                                         nullptr, nullptr, nullptr, &step))),
              "");
    OwnedGraph owned = OwnedGraph::take(step);
    tn_plan* plan = nullptr;
    EXPECT_EQ(
        text_of(Status(tenon_compile(session_, step, str(R"({"backend": "reference"})"), &plan))),
        "");
    std::vector<int64_t> counts = lengths;
    std::vector<int64_t> shape{static_cast<int64_t>(counts.size())};
    DenseView frames(TN_I64, shape, counts.data());
    DLTensor views[] = {x.dl(), target.dl()};
    const DLTensor* in[] = {&views[0], &views[1], frames.get()};
    Collected results(ctx_);
    uint64_t n = lengths.empty() ? 2 : 3;
    EXPECT_EQ(text_of(Status(tenon_run(plan, in, n, &results.raw, nullptr))), "");
    services.eval->release(plan);
    return {results.numbers<float>(0)[0], results.numbers<float>(1)};
  }
  template <class T>
  Tensor tensor(uint32_t dtype, const std::vector<int64_t>& shape, const json& numbers) {
    return *Tensor::of<T>(ctx_, dtype, shape, numbers.get<std::vector<T>>());
  }
  // A row; JSON has no infinities.
  Tensor floats(const std::vector<float>& row) {
    const int64_t shape[] = {1, std::ssize(row)};
    return *Tensor::of<float>(ctx_, TN_F32, shape, row);
  }
};

TEST_F(Loss, ValuesAndGradientsArePyTorchs) {
  json cases = golden("losses.json")["cases"];
  for (const json& one : cases) {
    SCOPED_TRACE(one["loss"].get<std::string>() + one["options"].dump() +
                 one["target_shape"].dump());
    std::vector<int64_t> lengths = one.value("lengths", std::vector<int64_t>{});
    Case of{one["shape"], one["target_shape"], one["target_is_float"] ? TN_F32 : TN_I64,
            static_cast<int64_t>(lengths.size())};
    auto graph = build(one["loss"].get<std::string>(), one["options"], of);
    ASSERT_TRUE(graph.ok()) << text_of(graph.status());
    Tensor target = one["target_is_float"]
                        ? tensor<float>(TN_F32, of.target_shape, one["target"])
                        : tensor<int64_t>(TN_I64, of.target_shape, one["target"]);
    auto [value, gradient] =
        run(*graph, tensor<float>(TN_F32, of.shape, one["prediction"]), target, lengths);
    EXPECT_NEAR(value, one["value"].get<double>(), 1e-6);
    EXPECT_THAT(gradient,
                Pointwise(testing::FloatNear(1e-6f), one["gradient"].get<std::vector<float>>()));
  }
}

TEST_F(Loss, EachOfOursHasAGoldenCase) {
  std::set<std::string> known;
  for (const char* file : {"losses.json", "contrastive.json"}) {
    json cases = golden(file)["cases"];
    for (const json& one : cases)
      known.insert(one["loss"]);
  }
  StringSink text;
  ASSERT_EQ(text_of(Status(services.component->list(ctx_, str("tenon.loss/1"), text.get()))), "");
  for (const json& one : json::parse(text.text)) {
    std::string id = one["id"];
    EXPECT_TRUE(!id.starts_with("trainer.") || known.contains(id)) << id;
  }
}

// By hand, with all 3^4 paths of frames (0,1,2), (1,0,.5), (.2,.3,.4), (2,0,1), blank 0.
TEST_F(Loss, CtcSumsOverAllPaths) {
  const json scores = {0, 1, 2, 1, 0, 0.5, 0.2, 0.3, 0.4, 2, 0, 1};
  auto loss = [&](const std::vector<int64_t>& text, const json& options = json::object()) {
    auto length = static_cast<int64_t>(text.size());
    auto graph = build("trainer.ctc", options, {{1, 4, 3}, {1, length}});
    EXPECT_TRUE(graph.ok()) << text_of(graph.status());
    return run(*graph, tensor<float>(TN_F32, {1, 4, 3}, scores),
               tensor<int64_t>(TN_I64, {1, length}, text));
  };
  auto [of_12, slope] = loss({1, 2}, {{"divide_by", "one"}});
  EXPECT_NEAR(of_12, 2.0803137565, 1e-6);
  EXPECT_THAT(std::vector<float>(slope.begin(), slope.begin() + 3),
              Pointwise(testing::FloatNear(1e-6f),
                        std::vector<float>{-0.00533248f, -0.65990847f, 0.66524096f}));
  for (size_t frame = 0; frame < 4; ++frame)
    EXPECT_NEAR(slope[3 * frame] + slope[3 * frame + 1] + slope[3 * frame + 2], 0, 1e-6);
  EXPECT_NEAR(loss({1, 1}).first, 3.3202370604 / 2, 1e-6);
  EXPECT_NEAR(loss({2}).first, 1.5611941070, 1e-6);
  EXPECT_EQ(loss({1, 1, 1}).first, std::numeric_limits<double>::infinity());
  auto [none, still] = loss({1, 1, 1}, {{"zero_infinity", true}});
  EXPECT_EQ(none, 0);
  EXPECT_THAT(still, testing::Each(0));
}

// Figures of Lin et al.'s formula in float64: z = (2, -1, .5), t = (1, 0, 1), alpha .25, gamma 2.
TEST_F(Loss, FocalLooksAtWhatIsWrong) {
  auto graph = build("trainer.focal", {{"alpha", 0.25}}, {{1, 3}, {1, 3}, TN_F32});
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  auto [value, gradient] = run(*graph, tensor<float>(TN_F32, {1, 3}, {2, -1, 0.5}),
                               tensor<float>(TN_F32, {1, 3}, {1, 0, 1}));
  EXPECT_NEAR(value, (0.0004508907 + 0.0169935431 + 0.0168933726) / 3, 1e-8);
  const float slopes[] = {-0.0012177350f, 0.0394358475f, -0.0344842493f};
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(gradient[i], slopes[i] / 3, 1e-8);
}

TEST_F(Loss, LogitsFarFromZeroAreExact) {
  Case of{{1, 4}, {1, 4}, TN_F32};
  for (auto [id, op] : {std::pair{"trainer.bce_with_logits", ""}, {"trainer.bce", "Sigmoid"}}) {
    auto graph = build(id, {}, of, op);
    ASSERT_TRUE(graph.ok()) << text_of(graph.status());
    auto [value, gradient] = run(*graph, tensor<float>(TN_F32, {1, 4}, {200, -200, 200, -200}),
                                 tensor<float>(TN_F32, {1, 4}, {0, 1, 1, 0}));
    EXPECT_FLOAT_EQ(value, 100) << id;
    EXPECT_THAT(gradient, testing::ElementsAre(0.25f, -0.25f, 0, 0)) << id;
  }
  for (const char* id : {"trainer.bce_with_logits", "trainer.focal"}) {
    auto graph = build(id, {}, of, "Sigmoid");
    ASSERT_FALSE(graph.ok());
    EXPECT_THAT(text_of(graph.status()), HasSubstr("expected logits, got probabilities"));
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

constexpr float kNever = -std::numeric_limits<float>::infinity();

TEST_F(Loss, AClassThatCannotBeLosesNothing) {
  for (const json& options : {json::object(), json{{"weight", {1, 2, 3}}}}) {
    auto graph = build("trainer.cross_entropy", options, {{1, 3}, {1}});
    ASSERT_TRUE(graph.ok()) << text_of(graph.status());
    auto [value, gradient] = run(*graph, floats({0, 0, kNever}), tensor<int64_t>(TN_I64, {1}, {1}));
    EXPECT_FLOAT_EQ(value, std::log(2.0f)) << options;
    EXPECT_THAT(gradient, Pointwise(testing::FloatEq(), {0.5f, -0.5f, 0.0f})) << options;
  }
}

TEST_F(Loss, AClassWithoutAShareAddsNothingToTheDivergence) {
  for (const char* target : {"probabilities", "log_probabilities", "logits"}) {
    auto graph = build("trainer.kl", {{"target", target}}, {{1, 3}, {1, 3}, TN_F32});
    ASSERT_TRUE(graph.ok()) << text_of(graph.status());
    const bool is_share = target == std::string("probabilities");
    std::vector<float> half(3, is_share ? 0.5f : std::log(0.5f));
    half[2] = is_share ? 0 : kNever;
    for (float last : {0.0f, kNever}) {
      auto [value, gradient] = run(*graph, floats({0, 0, last}), floats(half));
      EXPECT_NEAR(value, last == 0 ? std::log(1.5) : 0, 1e-6) << target;
      EXPECT_NEAR(gradient[2], last == 0 ? 1.0 / 3 : 0, 1e-6) << target;
    }
  }
}

// PyTorch: logarithms are -100 at the least.
TEST_F(Loss, ProbabilitiesOfZeroAndOneHaveFiniteSlopes) {
  auto graph = build("trainer.bce", {}, {{1, 4}, {1, 4}, TN_F32});
  ASSERT_TRUE(graph.ok()) << text_of(graph.status());
  auto [value, gradient] = run(*graph, tensor<float>(TN_F32, {1, 4}, {0, 1, 0, 0.5}),
                               tensor<float>(TN_F32, {1, 4}, {0, 1, 1, 1}));
  EXPECT_FLOAT_EQ(value, (100 + std::log(2.0f)) / 4);
  for (float slope : gradient)
    EXPECT_TRUE(std::isfinite(slope)) << slope;
  EXPECT_FLOAT_EQ(gradient[3], -0.5f);
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
  EXPECT_THAT(failure("trainer.ctc", {}, {{2, 3}, {2, 2}}),
              HasSubstr("[samples, frames, classes]"));
  EXPECT_THAT(failure("trainer.ctc", {}, {{2, 3, 4}, {2}}), HasSubstr("padded with -1"));
  EXPECT_THAT(failure("trainer.ctc", {{"blank", 4}}, {{2, 3, 4}, {2, 2}}),
              HasSubstr("option blank: expected a class from 0 to 3, got 4"));
  EXPECT_THAT(refusal("tenon.loss/1", "trainer.huber", {{"delta", 0}}), HasSubstr("delta"));
  EXPECT_THAT(refusal("tenon.loss/1", "trainer.cross_entropy", {{"label_smoothing", 1}}),
              HasSubstr("label_smoothing"));
}

}  // namespace
}  // namespace tenon::test
