// SPDX-License-Identifier: Apache-2.0
// Levels of mixed precision, the scaler's options, and passes on forward and backward together.
#include <cmath>

#include "tenon/role/loss.h"

#include "tenon/half.hpp"
#include "tenon/sdk/build.hpp"

#include "training_session.hpp"

namespace tenon::test {
namespace {

constexpr std::string_view kProbability = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 1] = [0.5, -0.5]
  %z: f32[n, 1] = MatMul(%x, %w) @product
  %y: f32[n, 1] = FINAL(%z) @final
  output y = %y
}
)";

class Levels : public TrainingTest {
 protected:
  void SetUp() override {
    TrainingTest::SetUp();
    model_ = parse(kLinear);
  }
  void TearDown() override {
    lent_.clear();
    model_ = {};
  }
  json options(const char* precision) {
    return {{"epochs", 5}, {"batch", 16}, {"rate", 1.0}, {"precision", precision}};
  }
  std::vector<float> weights(const json& given) {
    auto trained = train(model_, data(table(96)), given);
    EXPECT_TRUE(trained.ok()) << text_of(trained.status());
    return trained.ok() ? weight(*trained, "w") : std::vector<float>();
  }
  std::string refusal(const json& given) { return failure(model_, data(table(96)), given); }
  OwnedGraph probability(const char* final) {
    std::string text(kProbability);
    text.replace(text.find("FINAL"), 5, final);
    return parse(text);
  }

  OwnedGraph model_;
};

TEST_F(Levels, AreApexsLevels) {
  std::vector<float> single = weights(options("fp32"));
  EXPECT_EQ(weights(options("O0")), single);
  EXPECT_EQ(weights(options("O1")), weights(options("fp16")));
  for (const char* level : {"O1", "O2", "O3"})
    EXPECT_THAT(weights(options(level)), testing::Pointwise(testing::FloatNear(0.05f), single))
        << level;
  bool all_low = true, any_wide = false;
  for (float x : weights(options("O3")))
    all_low = all_low && float_of_half(half_of_float(x)) == x;
  for (float x : weights(options("O2")))
    any_wide = any_wide || float_of_half(half_of_float(x)) != x;
  EXPECT_TRUE(all_low) << "O3 has parameters of float16";
  EXPECT_TRUE(any_wide) << "O2 has a master copy";
}

// 1 + 2^-10 is a number of float16 and 1 in bfloat16.
TEST_F(Levels, AllOfThemComputeInFloat16) {
  std::string text(kLinear);
  text.replace(text.find("[0, 0, 0, 0]"), 12, "[1.0009765625, 0, 0, 3.0029296875]");
  model_ = parse(text);
  auto first_loss = [&](const char* precision) {
    json given = options(precision);
    given["epochs"] = 1, given["batch"] = 96;
    weights(given);
    return report_["history"][0]["loss"].get<double>();
  };
  EXPECT_EQ(first_loss("O3"), first_loss("O2"));
  EXPECT_NE(first_loss("O3"), first_loss("bf16"));
}

TEST_F(Levels, TheScalerIsChosen) {
  json given = options("fp16");
  weights(given);
  EXPECT_EQ(report_["history"].back()["skipped"], 0);
  given["loss_scale"] = {{"preset", "deepspeed"}};
  weights(given);
  EXPECT_GT(report_["history"].back()["skipped"], 8) << "it begins at 2^32";
  given["loss_scale"] = {{"init_scale", 256}};
  weights(given);
  EXPECT_EQ(report_["history"].back()["skipped"], 0);
}

TEST_F(Levels, TheScalersOptionsAreChecked) {
  json given = options("fp16");
  given["loss_scale"] = {{"initial", 4}};
  EXPECT_THAT(refusal(given), HasSubstr("option loss_scale"));
  given["loss_scale"] = {{"preset", "apx"}};
  EXPECT_THAT(refusal(given), HasSubstr("expected one of torch, apex, deepspeed, got 'apx'"));
  given = options("bf16");
  given["loss_scale"] = {{"init_scale", 4}};
  EXPECT_THAT(refusal(given),
              HasSubstr("option loss_scale: expected precision fp16, O1 or O2, got bf16"));
}

TEST_F(Levels, ProbabilitiesInFloat16AreRefusedAndLogitsTaken) {
  Component rows = data(table(32));
  json given{{"loss", "bce"}, {"rate", 0.1}, {"precision", "fp16"}};
  EXPECT_THAT(failure(probability("HardSigmoid"), rows, given),
              HasSubstr("use the one of logits (trainer.bce_with_logits)"));
  EXPECT_EQ(failure(probability("Sigmoid"), rows, given), "");
  given["precision"] = "bf16";
  EXPECT_EQ(failure(probability("HardSigmoid"), rows, given), "");
}

// Softmax regression by hand, in the order of the table.
// radius: of sharpness-aware minimization; 0: the gradient is that at the weights. adapts: ASAM.
std::vector<double> regressed(
    int rows, int batch, int epochs, double rate, double radius = 0, bool adapts = false) {
  std::vector<double> w(4), b(2);
  auto gradients = [](int first, int n, const std::vector<double>& at,
                      const std::vector<double>& bias) {
    std::vector<double> out(6);
    for (int i = first; i < first + n; ++i) {
      // As the table has them: six digits, in float32.
      const double x[] = {std::stof(std::to_string((i * 37 % 101) / 101.0)),
                          std::stof(std::to_string((i * 53 % 103) / 103.0))};
      const double z[] = {x[0] * at[0] + x[1] * at[2] + bias[0],
                          x[0] * at[1] + x[1] * at[3] + bias[1]};
      const int label = (i * 37 % 101) / 101.0 > (i * 53 % 103) / 103.0 ? 1 : 0;
      for (size_t k = 0; k < 2; ++k) {
        const double p = 1 / (1 + std::exp(z[1 - k] - z[k]));
        const double d = (p - (static_cast<int>(k) == label)) / n;
        out[k] += x[0] * d, out[2 + k] += x[1] * d, out[4 + k] += d;
      }
    }
    return out;
  };
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (int begin = 0; begin < rows; begin += batch) {
      const int n = std::min(batch, rows - begin);
      std::vector<double> g = gradients(begin, n, w, b), far_w = w, far_b = b;
      double squares = 0;
      auto size = [&](size_t j) { return !adapts ? 1 : std::abs(j < 4 ? w[j] : b[j - 4]); };
      for (size_t j = 0; j < 6; ++j)
        squares += std::pow(g[j] * size(j), 2);
      for (size_t j = 0; j < 6; ++j)
        (j < 4 ? far_w[j] : far_b[j - 4]) +=
            radius * g[j] * size(j) * size(j) / (std::sqrt(squares) + 1e-12);
      g = gradients(begin, n, far_w, far_b);
      for (size_t j = 0; j < 6; ++j)
        (j < 4 ? w[j] : b[j - 4]) -= rate * g[j];
    }
  return w;
}

TEST_F(Levels, StepsInFloat64HaveItsDigits) {
  json given = options("fp64");
  given["shuffle"] = false;
  const std::vector<double> wanted = regressed(96, 16, 5, 1.0);
  std::vector<float> rounded(wanted.begin(), wanted.end());
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatEq(), rounded));

  std::string text(kLinear);
  for (size_t at; (at = text.find("f32")) != std::string::npos;)
    text.replace(at, 3, "f64");
  OwnedGraph wide = parse(text);
  given["precision"] = "fp32";  // a model of float64 stays one
  auto trained = train(wide, data(table(96)), given);
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  Value w = trained->view().find("w");
  ASSERT_EQ(w.dtype(), TN_F64);
  const double* got = w.constant().data<double>();
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-13) << i;
}

// The mean of ((x w + b - t) scale)^2; the loss has scale trained.
tn_status* scaled_squares(void*, tn_edit* raw, const tn_objective* given, tn_value_id* out) {
  return guard([&]() -> Status {
    EditView edit{raw};
    Builder b(edit);
    TN_TRY(scale, edit.constant<float>(TN_F32, {2}, {0.5f, 2}, "scale"));
    TN_CHECK(Status(given->trained(given->trained_self, scale.id)));
    Value t = b.cast(edit.value(given->targets[0]), TN_F32);
    Value d = b.mul(b.sub(edit.value(given->predictions[0]), b.op("Unsqueeze", {t, b.ints({-1})})),
                    scale);
    Value loss = b.op("ReduceMean", {b.mul(d, d)}, {{"keepdims", 0}});
    *out = loss.id;
    return b.status();
  });
}

TEST_F(Levels, WhatALossTrainsIsFloat64Too) {
  static const tn_loss table{sizeof table, 1, scaled_squares};
  tn_component_ref* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.component->lend(ctx_, str("tenon.loss/1"), str("test.squares"),
                                                    &table, nullptr, nullptr, &raw))),
            "");
  lent_["loss"] = std::move(*Component::share(raw, "tenon.loss/1"));
  services.component->release(raw);
  json given = options("fp32");
  given["rate"] = 0.1;
  const std::vector<float> single = weights(given);
  given["precision"] = "fp64";
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatNear(1e-5f), single));
}

// A file of NumPy with 8 numbers 1 + 2^-40, which float32 has as 1: input and target in one.
TEST_F(Levels, TargetsOfFloat64KeepTheirDigitsInItsSteps) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (8, 1), }";
  header.resize(117, ' ');
  std::string file("\x93NUMPY\x01\0\x76\0", 10);
  file += header + "\n";
  const std::vector<double> numbers(8, 1 + 0x1p-40);
  file.append(reinterpret_cast<const char*>(numbers.data()), 8 * sizeof(double));
  auto rows =
      make("tenon.dataset/1", "datasets.npz", {{"path", write("x.npy", file)}, {"fields", {"x"}}});
  ASSERT_TRUE(rows.ok()) << text_of(rows.status());
  OwnedGraph identity = parse(R"(graph {
  input %x: f32[n, 1]
  constant %w: f32[1, 1] = [1]
  %y: f32[n, 1] = MatMul(%x, %w) @product
  output y = %y
}
)");
  auto loss = [&](const char* precision) {
    json given{{"epochs", 1}, {"batch", 8}, {"rate", 1e-9}, {"loss", "mse"}, {"target", "x"}};
    given["precision"] = precision;
    EXPECT_EQ(failure(identity, *rows, given), "");
    return report_["history"][0]["loss"].get<double>();
  };
  EXPECT_EQ(loss("fp32"), 0);
  EXPECT_NEAR(loss("fp64") / 0x1p-80, 1, 1e-6);
}

TEST_F(Levels, FewerBitsThanParametersOfFloat64HaveAreRefused) {
  std::string text(kLinear);
  for (size_t at; (at = text.find("f32")) != std::string::npos;)
    text.replace(at, 3, "f64");
  model_ = parse(text);
  for (const char* precision : {"bf16", "fp16", "fp8", "O1", "O2", "O3"})
    EXPECT_THAT(refusal(options(precision)),
                HasSubstr("parameter w is float64: expected fp32 or fp64 (steps in float64), or "
                          "a model in float32"))
        << precision;
  EXPECT_EQ(refusal(options("fp64")), "");
}

// One parameter of float64 leaves the others in float32, rounded to it or not.
TEST_F(Levels, OneParameterOfFloat64LeavesTheOthersAsTheyAre) {
  OwnedGraph mixed = parse(R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 2] = [0, 0, 0, 0]
  constant %b: f64[2] = [0, 0]
  %xw: f32[n, 2] = MatMul(%x, %w) @product
  %wide: f64[n, 2] = Cast(%xw) {to = dtype f64} @wide
  %y: f64[n, 2] = Add(%wide, %b) @sum
  output y = %y
}
)");
  const std::vector<float> single = weights(options("fp32"));
  auto trained = train(mixed, data(table(96)), options("fp32"));
  ASSERT_TRUE(trained.ok()) << text_of(trained.status());
  EXPECT_EQ(trained->view().find("b").dtype(), TN_F64);
  EXPECT_THAT(weight(*trained, "w"), testing::Pointwise(testing::FloatNear(1e-5f), single));
}

TEST_F(Levels, SharpnessTakesTheGradientOfTheWorstPointNearby) {
  json given = options("fp64");
  given["shuffle"] = false;
  given["joint"] = {{"trainer.sharpness", {{"radius", 0.5}}}};
  const std::vector<double> wanted = regressed(96, 16, 5, 1.0, 0.5);
  std::vector<float> rounded(wanted.begin(), wanted.end());
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatEq(), rounded));
  given["precision"] = "fp16";  // the norm divides the loss scale out
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatNear(0.05f), rounded));
}

// Within a radius of nothing both passes are of the same loss, if they draw the same.
TEST_F(Levels, SharpnessDrawsOnceForBothPasses) {
  std::string text(kLinear);
  text.replace(text.find("Add(%xw"), 7, "Add(%noisy");
  text.insert(text.find("  %y"), R"(  %noise: f32[n, 2] = RandomNormalLike(%xw) {scale = 2.0} @noise
  %noisy: f32[n, 2] = Mul(%xw, %noise) @noisy
)");
  model_ = parse(text);
  json given = options("fp32");
  given["shuffle"] = false;
  const std::vector<float> plain = weights(given);
  given["joint"] = {{"trainer.sharpness", {{"radius", 1e-6}}}};
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatNear(1e-4f), plain));
}

TEST_F(Levels, AdaptiveSharpnessGoesByTheSizesOfWeights) {
  json given = options("fp64");
  given["shuffle"] = false;
  given["joint"] = {{"trainer.sharpness", {{"radius", 0.5}, {"adaptive", true}}}};
  const std::vector<double> wanted = regressed(96, 16, 5, 1.0, 0.5, true);
  EXPECT_GT(std::abs(wanted[0] - regressed(96, 16, 5, 1.0, 0.5)[0]), 1e-3);
  std::vector<float> rounded(wanted.begin(), wanted.end());
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatEq(), rounded));
}

TEST_F(Levels, ADoubleRunGoesOnFromItsCheckpoint) {
  json given = options("fp64");
  std::vector<float> whole = weights(given);
  given["run"] = (folder_ / "double").string();
  given["epochs"] = 2;
  weights(given);
  given["epochs"] = 5;
  given["resume"] = true;
  EXPECT_EQ(weights(given), whole);
}

TEST_F(Levels, ProductsOfFloat8TrainToo) {
  json given = options("fp32");
  given["batch"] = 40;  // and 16 at the end
  std::vector<float> single = weights(given);
  given["precision"] = "fp8";
  given["fp8"] = {{"history", 16}};
  std::vector<float> low = weights(given);
  EXPECT_NE(low, single);
  EXPECT_THAT(low, testing::Pointwise(testing::FloatNear(0.1f), single));
  given["joint"] = "autodiff.recompute";
  EXPECT_EQ(weights(given), low) << "what is computed again is rounded by the same scales";
  given.erase("joint");
  given["fp8"] = {{"histories", 16}};
  EXPECT_THAT(refusal(given), HasSubstr("option fp8"));
  given["precision"] = "bf16";
  EXPECT_THAT(refusal(given), HasSubstr("option fp8: expected precision = 'fp8' beside it"));
}

TEST_F(Levels, TF32IsRefusedWhereThereIsNone) {
  EXPECT_THAT(refusal(options("tf32")),
              HasSubstr("tf32 is how products of float32 are computed on CUDA; backend reference"));
}

TEST_F(Levels, AScalerGoesOnFromAnothersState) {
  json given = options("fp16");
  given["loss_scale"] = {{"preset", "apex"},
                         {"state", {{"loss_scale", 1024}, {"unskipped", 1999}}}};
  weights(given);
  EXPECT_EQ(report_["history"].back()["loss_scale"], 2048);
}

TEST_F(Levels, ARecordShowsWhatFloat16MakesOfGradients) {
  json given = options("fp32");
  given["gradient_histogram"] = true;
  given["epochs"] = 1;
  std::vector<float> with = weights(given);
  const json record = report_["history"][0];
  EXPECT_EQ(record["gradients_flushed"], 0);
  EXPECT_EQ(record["gradients_overflow"], 0);
  double largest = record["largest_gradient"];
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 1);
  double advised = record["advised_loss_scale"];
  EXPECT_LE(advised * largest * 4, 65504);
  EXPECT_GT(advised * largest * 8, 65504);
  given.erase("gradient_histogram");
  EXPECT_EQ(with, weights(given)) << "it changes nothing";
}

TEST_F(Levels, PassesOnForwardAndBackwardAreApplied) {
  json given = options("fp32");
  std::vector<float> plain = weights(given);
  given["joint"] = "autodiff.recompute";
  EXPECT_EQ(weights(given), plain);
  given["joint"] = "autodiff.example_norms";
  EXPECT_EQ(weights(given), plain) << "norms of examples change nothing";
  given["joint"] = {{"autodiff.example_norms", {{"clip", 1e6}}}};
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatNear(1e-6f), plain));
  given["joint"] = {{"autodiff.example_norms", {{"clip", 1e-3}}}};
  EXPECT_NE(weights(given), plain) << "what an example may add is bounded";
  given["joint"] = {{"autodiff.compress", {{"min_bytes", 0}, {"form", "bfloat16"}}}};
  EXPECT_THAT(weights(given), testing::Pointwise(testing::FloatNear(0.05f), plain));
  given["joint"] = {{"autodiff.compress", {{"form", "int4"}}}};
  EXPECT_THAT(refusal(given), HasSubstr("expected one of int8, bfloat16, got 'int4'"));
  given["joint"] = "autodiff.remember";
  EXPECT_THAT(refusal(given), HasSubstr("autodiff.remember"));
}

}  // namespace
}  // namespace tenon::test
