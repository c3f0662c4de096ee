// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "training_session.hpp"

namespace tenon::test {
namespace {

using testing::Each;

class Train : public TrainingTest {};

TEST_F(Train, LearnsWhatTheTableSays) {
  auto model = parse(kLinear);
  auto trained = train(
      model, data(table(100)),
      {{"epochs", 20}, {"batch", 16}, {"rate", 1.0}, {"validation", 0.2}, {"metric", "accuracy"}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  const json& history = report_["history"];
  ASSERT_EQ(history.size(), 20u);
  EXPECT_EQ(history.back()["steps"], 100);
  EXPECT_LT(history.back()["loss"], history.front()["loss"]);
  EXPECT_GE(history.back()["accuracy"].get<double>(), 0.95);
  std::vector<float> w = weight(*trained, "w");  // [x, class]
  EXPECT_GT(w[1], w[0]);
  EXPECT_LT(w[3], w[2]);
  EXPECT_THAT(weight(model, "w"), Each(0)) << "the model that was given stays as it is";
}

// One batch of all samples, so that order does not matter: one step of plain gradient descent.
TEST_F(Train, OneStepIsTheGradient) {
  auto model = parse(kLinear);
  Component two = data(write("two.csv", "a,b,label\n1,0,0\n0,2,1\n"));
  auto trained = train(model, two, {{"rate", 1.0}, {"batch", 2}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  // softmax is 1/2 everywhere: gradient = x^T (p - q) / 2.
  EXPECT_THAT(weight(*trained, "w"), testing::ElementsAre(0.25f, -0.25f, -0.5f, 0.5f));
  EXPECT_NEAR(report_["history"][0]["loss"].get<double>(), std::log(2.0), 1e-6);
}

TEST_F(Train, TheLastOddBatchCounts) {
  auto model = parse(kLinear);
  Component ten = data(table(10));
  ASSERT_TRUE(train(model, ten, {{"batch", 4}}).ok());
  EXPECT_EQ(report_["steps"], 3);
  ASSERT_TRUE(train(model, ten, {{"batch", 4}, {"drop_last", true}}).ok());
  EXPECT_EQ(report_["steps"], 2);
  ASSERT_TRUE(train(model, ten, {{"batch", 64}}).ok());
  EXPECT_EQ(report_["steps"], 1);
}

TEST_F(Train, AModelForOneSampleIsTrainedInBatches) {
  // As exporters leave it: types of the values in between are inferred, not declared.
  std::string text(kLinear);
  text.replace(text.find("[n, 2]"), 6, "[1, 2]");
  for (size_t at; (at = text.find("f32[n, 2]")) != std::string::npos;)
    text.replace(at, 9, "?[*]");
  auto trained = train(parse(text), data(table(10)), {{"batch", 5}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(report_["steps"], 2);
}

TEST_F(Train, RunsRepeatAndSeedsDiffer) {
  auto model = parse(kLinear);
  Component rows = data(table(50));
  json options{{"epochs", 2}, {"batch", 8}, {"optimizer", "adamw"}};
  auto weights = [&](uint64_t seed) {
    options["seed"] = seed;
    auto trained = train(model, rows, options);
    EXPECT_TRUE(trained.ok());
    return weight(*trained, "w");
  };
  std::vector<float> first = weights(1);
  EXPECT_EQ(first, weights(1));
  EXPECT_NE(first, weights(2));
}

TEST_F(Train, FrozenParametersStay) {
  auto model = parse(kLinear);
  auto trained = train(model, data(table(20)), {{"frozen", "b"}, {"rate", 1.0}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_THAT(weight(*trained, "b"), Each(0));
  EXPECT_NE(weight(*trained, "w")[0], 0);
  trained = train(model, data(table(20)), {{"parameters", "sum"}, {"rate", 1.0}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_THAT(weight(*trained, "w"), Each(0)) << "only what node sum reads is trained";
  EXPECT_NE(weight(*trained, "b")[0], 0);
  EXPECT_THAT(failure(model, data(table(20)), {{"frozen", {"b", "z*"}}}),
              HasSubstr("option frozen: no constant of the model fits 'z*' (it has w, b)"));
}

TEST_F(Train, GroupsHaveARateOfTheirOwn) {
  auto model = parse(kLinear);
  Component rows = data(table(20));
  json options{{"batch", 20}, {"rate", 1.0}};
  auto plain = train(model, rows, options);
  options["groups"] = {{"bias", {{"parameters", "b"}, {"rate", 0.5}}}};
  auto grouped = train(model, rows, options);
  ASSERT_TRUE(plain.ok() && grouped.ok());
  EXPECT_EQ(weight(*grouped, "w"), weight(*plain, "w"));
  EXPECT_FLOAT_EQ(weight(*grouped, "b")[0], weight(*plain, "b")[0] / 2);
}

TEST_F(Train, ClippingKeepsTheDirection) {
  auto model = parse(kLinear);
  Component rows = data(table(20));
  json options{{"batch", 20}, {"rate", 1.0}};
  auto plain = train(model, rows, options);
  options["clip_norm"] = 0.01;
  auto clipped = train(model, rows, options);
  ASSERT_TRUE(plain.ok() && clipped.ok());
  double norm = 0, full = 0;
  for (const char* name : {"w", "b"}) {
    for (float x : weight(*clipped, name))
      norm += x * x;
    for (float x : weight(*plain, name))
      full += x * x;
  }
  EXPECT_NEAR(std::sqrt(norm), 0.01, 1e-5);
  EXPECT_NEAR(weight(*clipped, "w")[0] / weight(*plain, "w")[0], 0.01 / std::sqrt(full), 1e-4);
}

// torch.nn.utils.clip_grad_norm_ of PyTorch 2.15 on the same gradients.
TEST_F(Train, ClippingIsPyTorchs) {
  OwnedGraph gradients = parse(R"(graph {
    input %a: f32[2]
    input %b: f32[1]
    %ga: f32[2] = Neg(%a) @ga
    %gb: f32[1] = Neg(%b) @gb
    output "grad/a" = %ga
    output "grad/b" = %gb
  })");
  tn_options* options = nullptr;
  ASSERT_EQ(text_of(Status(services.options->create(ctx_, &options))), "");
  ASSERT_EQ(text_of(Status(services.options->parse(options, str(R"({"norm": 6.5})")))), "");
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(tenon_apply(session_, gradients.get(), str("trainer.clip"), options,
                                       nullptr, nullptr, &raw))),
            "");
  services.options->release(options);
  OwnedGraph clipped = OwnedGraph::take(raw);
  tn_plan* plan = nullptr;
  ASSERT_EQ(
      text_of(Status(tenon_compile(session_, raw, str(R"({"backend": "reference"})"), &plan))), "");
  float a[] = {-3, 4}, b[] = {-12};
  DenseView views[] = {{TN_F32, std::vector<int64_t>{2}, a}, {TN_F32, std::vector<int64_t>{1}, b}};
  const DLTensor* in[] = {views[0].get(), views[1].get()};
  Collected results(ctx_);
  EXPECT_EQ(text_of(Status(tenon_run(plan, in, 2, &results.raw, nullptr))), "");
  services.eval->release(plan);
  EXPECT_THAT(results.numbers<float>(0),
              testing::ElementsAre(1.4999998807907104f, -1.9999998807907104f));
  EXPECT_THAT(results.numbers<float>(1), testing::ElementsAre(5.999999523162842f));
  EXPECT_THAT(results.numbers<float>(2), testing::ElementsAre(13));
}

TEST_F(Train, StopsWhenNothingGetsBetter) {
  auto model = parse(kLinear);
  auto trained = train(model, data(table(40)),
                       {{"epochs", 50}, {"rate", 0}, {"validation", 0.25}, {"patience", 3}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(report_["epochs"], 4);
  EXPECT_EQ(report_["best_epoch"], 1);
  EXPECT_EQ(report_["stopped_early"], true);
}

TEST_F(Train, TheBestEpochIsRestored) {
  auto model = parse(kLinear);
  // A rate that makes each epoch worse than the first.
  json options{{"epochs", 9}, {"batch", 10}, {"rate", 4000}, {"validation", 0.25}, {"patience", 2}};
  auto best = train(model, data(table(40)), options);
  ASSERT_TRUE(best.ok()) << text_of(best.status());
  uint64_t epoch = report_["best_epoch"];
  ASSERT_LT(epoch, report_["epochs"]);
  options.erase("patience");
  options["epochs"] = epoch;
  auto until = train(model, data(table(40)), options);
  ASSERT_TRUE(until.ok()) << text_of(until.status());
  EXPECT_EQ(weight(*best, "w"), weight(*until, "w"));
}

TEST_F(Train, MixedPrecisionKeepsFloat32Parameters) {
  auto model = parse(kLinear);
  for (const char* precision : {"bf16", "fp16"}) {
    auto trained = train(model, data(table(100)),
                         {{"epochs", 10},
                          {"batch", 16},
                          {"rate", 1.0},
                          {"validation", 0.2},
                          {"metric", "accuracy"},
                          {"precision", precision}});
    ASSERT_TRUE(trained.ok()) << text_of(trained.status());
    EXPECT_GE(report_["history"].back()["accuracy"].get<double>(), 0.9) << precision;
    EXPECT_EQ(trained->view().find("w").dtype(), TN_F32);
  }
}

TEST_F(Train, WeightsBehindRoundingAreTrained) {
  OwnedGraph model = parse(R"(graph {
    input %x: f32[n, 2]
    constant %w: f32[2, 2] = [0.1, 0, 0, 0.1]
    constant %scales: f32[2] = [0.01, 0.01]
    constant %zeros: i8[2] = [0, 0]
    %q: i8[2, 2] = QuantizeLinear(%w, %scales, %zeros) @quantize
    %d: f32[2, 2] = DequantizeLinear(%q, %scales, %zeros) @dequantize
    %y: f32[n, 2] = MatMul(%x, %d) @product
    output y = %y
  })");
  auto trained =
      train(model, data(table(40)), {{"epochs", 4}, {"rate", 1.0}, {"optimizer", "sgd"}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(report_["parameters"], 1) << "scales are none";
  EXPECT_GT(weight(*trained, "w")[1], weight(*trained, "w")[0]);
  EXPECT_FLOAT_EQ(weight(*trained, "scales")[0], 0.01f);
}

// x -> BatchNormalization -> linear.
constexpr std::string_view kNormed = R"(graph {
  input %x: f32[n, 2]
  constant %scale: f32[2] = [1, 1]
  constant %shift: f32[2] = [0, 0]
  constant %mean: f32[2] = [0, 0]
  constant %variance: f32[2] = [1, 1]
  constant %w: f32[2, 2] = [0.1, 0, 0, 0.1]
  %h: f32[n, 2] = BatchNormalization(%x, %scale, %shift, %mean, %variance) {momentum = 0.5} @norm
  %y: f32[n, 2] = MatMul(%h, %w) @product
  output y = %y
}
)";

TEST_F(Train, RunningStatisticsFollowTheBatches) {
  auto model = parse(kNormed);
  Component two = data(write("two.csv", "a,b,label\n1,0,0\n3,8,1\n"));
  auto trained = train(model, two, {{"batch", 2}, {"rate", 0.1}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_THAT(weight(*trained, "mean"), testing::ElementsAre(1, 2));         // half of 2, 4
  EXPECT_THAT(weight(*trained, "variance"), testing::ElementsAre(1, 8.5f));  // half of 1+1, 1+16
  EXPECT_NE(weight(*trained, "scale")[0], 1);
  for (Node node : trained->view().nodes())
    EXPECT_EQ(node.attr_int("training_mode"), 0) << "what comes out is for inference";
  trained = train(model, two, {{"batch", 2}, {"rate", 0.1}, {"batch_norm", "frozen"}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_THAT(weight(*trained, "mean"), Each(0));
}

TEST_F(Train, DropoutDrawsAnotherMaskInEachStep) {
  std::string text(kLinear);
  text.replace(text.find("%xw: f32"), 3, "%dropped: f32[n, 2] = Dropout(%x, %ratio) @drop\n  %xw");
  text.replace(text.find("MatMul(%x"), 9, "MatMul(%dropped");
  text.replace(text.find("  constant %w"), 2, "  constant %ratio: f32[] = [0.5]\n  ");
  OwnedGraph model = parse(text);
  Component rows = data(table(8));
  json options{{"batch", 8}, {"rate", 0.0}, {"epochs", 6}, {"shuffle", false}};
  options["rate"] = 0.5;
  auto with = [&](uint64_t seed) {
    options["seed"] = seed;
    auto trained = train(model, rows, options);
    EXPECT_TRUE(trained.ok()) << text_of(trained.status());
    return weight(*trained, "w");
  };
  std::vector<float> first = with(1);
  EXPECT_EQ(first, with(1));
  EXPECT_NE(first, with(2));
}

TEST_F(Train, ARateCanBeASchedule) {
  auto model = parse(kLinear);
  auto trained = train(model, data(table(40)), {{"batch", 10}, {"rate", "scheduler.cosine"}});
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_LT(report_["history"][0]["rate"].get<double>(), 0.2) << "the last of four steps";
}

TEST_F(Train, WhatIsWrongIsNamed) {
  auto model = parse(kLinear);
  Component rows = data(table(20));
  Component three = data(write("three.csv", "a,b,label\n1,0,0\n0,2,2\n"));
  EXPECT_THAT(failure(model, three, {}),
              HasSubstr("field label: label 2 of sample 1: expected 0 to 1"));
  EXPECT_THAT(failure(model, rows, {{"loss", "croos"}}), HasSubstr("option loss"));
  EXPECT_THAT(failure(model, rows, {{"precision", "int8"}}), HasSubstr("precision"));
  EXPECT_THAT(failure(model, rows, {{"metric", "accuracy"}}),
              HasSubstr("option metric: expected validation beside it"));
  EXPECT_THAT(failure(model, rows, {{"validation", 1.5}}), HasSubstr("option validation"));
  EXPECT_THAT(
      failure(model, rows, {{"parameters", "z*"}}),
      HasSubstr("option parameters: no float32 constant of the model fits 'z*' (it has w, b)"));
  EXPECT_THAT(failure(model, rows, {{"groups", {{"g", {{"parameters", "q"}}}}}}),
              HasSubstr("option groups: g: no parameter fits 'q' (they are w, b)"));
  EXPECT_THAT(failure(model, rows, {{"plateau", {{"factors", 0.5}}}}),
              HasSubstr("option plateau: expected factor, patience"));
  EXPECT_THAT(failure(model, rows, {{"schedules", "cosine"}}),
              HasSubstr("option schedules: expected schedules by name or a trainer.driven, got "
                        "'cosine'"));
  EXPECT_THAT(failure(model, rows, {{"groups", {{"g", {{"patterns", "q"}}}}}}),
              HasSubstr("option groups: g"));
  std::string text(kLinear);
  for (size_t at; (at = text.find("%x:")) != std::string::npos ||
                  (at = text.find("%x,")) != std::string::npos;)
    text.replace(at, 2, "%z");
  Component wide = data(write("wide.csv", "a,b,c,label\n1,0,0,0\n0,2,2,1\n"));
  EXPECT_THAT(
      failure(parse(text), wide, {}),
      HasSubstr("option data: no field for z (the data set has x float32[3], label int64[]; "
                "the model wants z float32["));
}

TEST_F(Train, ALossThatIsNoNumberNamesTheStep) {
  auto model = parse(kLinear);
  std::string text =
      failure(model, data(table(40)), {{"batch", 10}, {"rate", 3e38}, {"epochs", 9}});
  EXPECT_THAT(text, HasSubstr("step "));
  EXPECT_THAT(text, HasSubstr("a lower rate or clip_norm may help"));
}

// y = sqrt(x w + b) at w = b = 0: its loss is a number, the gradient of the root is infinite.
constexpr std::string_view kRoot = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 2] = [0, 0, 0, 0]
  constant %b: f32[2] = [0, 0]
  %xw: f32[n, 2] = MatMul(%x, %w) @product
  %sum: f32[n, 2] = Add(%xw, %b) @sum
  %y: f32[n, 2] = Sqrt(%sum) @root
  output y = %y
}
)";

TEST_F(Train, NamesTheNodeOfTheFirstNan) {
  Component rows = data(table(32));
  json options{{"rate", 0.1}, {"batch", 8}, {"epochs", 2}};
  std::string plain = failure(parse(kRoot), rows, options);
  EXPECT_THAT(plain, HasSubstr("option check_nan shows where it begins"));
  options["check_nan"] = true;
  std::string found = failure(parse(kRoot), rows, options);
  EXPECT_THAT(found, HasSubstr("step 1 (epoch 1): the loss is 0.693"));
  // The gradient of b: infinite ones of both signs, added up.
  EXPECT_THAT(found, HasSubstr("the first NaN is in the result of operator ReduceSum"));
  EXPECT_TRUE(train(parse(kLinear), rows, options).ok());
}

TEST_F(Train, NamesTheInputThatHoldsNan) {
  std::string text = "a,b,label\n";
  for (int i = 0; i < 16; ++i)
    text += i == 13 ? "nan,0.5,1\n" : "0.25,0.5,0\n";
  json options{{"rate", 0.1}, {"batch", 4}, {"shuffle", false}, {"check_nan", true}};
  EXPECT_THAT(
      failure(parse(kLinear), data(write("nan.csv", text)), options),
      HasSubstr("step 4 (epoch 1): the loss is not a number, and the first NaN is in input x"));
}

// Some backends' fused Relu makes 0 of NaN, so that the loss stays a number: Max over the classes
// does the same here.
TEST_F(Train, RefusesWeightsThatAreNoNumbers) {
  constexpr std::string_view kHidden = R"(graph {
    input %x: f32[n, 2]
    constant %w: f32[2, 2] = [1, 0, 0, 1]
    constant %zero: f32[] = [0]
    %xw: f32[n, 2] = MatMul(%x, %w) @product
    %is_nan: bool[n, 2] = IsNaN(%xw) @is_nan
    %y: f32[n, 2] = Where(%is_nan, %zero, %xw) @hidden
    output y = %y
  }
  )";
  std::string text = "a,b,label\nnan,0.5,1\n0.25,0.5,0\n";
  EXPECT_THAT(
      failure(parse(kHidden), data(write("hidden.csv", text)), {{"batch", 2}}),
      HasSubstr("step 1: w is not finite any more, option check_nan shows where it begins"));
}

TEST_F(Train, GoesOnWithAnEyeOnNan) {
  Component rows = data(table(32));
  json options{{"rate", 0.1}, {"batch", 8}, {"run", (folder_ / "run").string()}};
  ASSERT_TRUE(train(parse(kLinear), rows, options).ok());
  options.update({{"resume", true}, {"check_nan", true}, {"epochs", 2}});
  auto went_on = train(parse(kLinear), rows, options);
  ASSERT_TRUE(went_on.ok()) << text_of(went_on.status());
  std::vector<float> w = weight(*went_on, "w");
  options = {{"rate", 0.1}, {"batch", 8}, {"epochs", 2}};
  EXPECT_EQ(w, weight(*train(parse(kLinear), rows, options), "w"));
}

}  // namespace
}  // namespace tenon::test
