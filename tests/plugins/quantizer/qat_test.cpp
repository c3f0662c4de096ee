// SPDX-License-Identifier: Apache-2.0
#include "tenon/sdk/number.hpp"

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;

class Qat : public PassTest {
 protected:
  // Two convolutions with a residual, a pool, a mean and a classifier.
  void SetUp() override {
    PassTest::SetUp();
    residual_cnn();
  }
  json options(json more = json::object()) {
    more["data"] = data("x", {3, 8, 8}, 16, 20);
    return more;
  }
  // What static and the two passes make of the same model.
  OwnedGraph converted(const json& given) {
    EXPECT_EQ(apply("quantizer.qat", given), "");
    std::swap(model_, result_);
    EXPECT_EQ(apply("quantizer.convert", json::object()), "");
    std::swap(model_, result_);
    return std::move(model_);
  }
  static std::vector<double> numbers(Value constant) {
    std::vector<double> out;
    with_numbers(constant.constant().dl(), [&](const auto* from) {
      for (int64_t i = 0, n = constant.type().elements(); i < n; ++i)
        out.push_back(static_cast<double>(from[i]));
    });
    return out;
  }
};

TEST_F(Qat, LeavesFloatWeightsBehindNodesThatRoundThem) {
  ASSERT_EQ(apply("quantizer.qat", options()), "");

  EXPECT_THAT(reads("conv_a"), ElementsAre("x_dequantized", "wa_dequantized", "ba"));
  EXPECT_EQ(reads("wa_rounded")[0], "wa");
  EXPECT_EQ(result_.view().find("wa").dtype(), TN_F32);
  EXPECT_THAT(result_.view().find("wb_dequantized").producer().input(1).type().dims,
              ElementsAre(8));
  Floats batch = random(2 * 3 * 64, 21);
  EXPECT_GE(cosine(run(model_, {2, 3, 8, 8}, batch), run(result_, {2, 3, 8, 8}, batch)), 0.99);
}

TEST_F(Qat, ScalesOfActivationsAreLearnedToo) {
  ASSERT_EQ(apply("quantizer.qat", options({{"scales", "all"}})), "");
  EXPECT_THAT(result_.view().find("x_step").type().dims, ElementsAre(1));
  const float before = *result_.view().find("x_step").constant().data<float>();
  std::swap(model_, result_);
  ASSERT_EQ(apply("quantizer.convert", json::object()), "");

  EXPECT_GE(report_["steps"], 3);
  EXPECT_EQ(*result_.view().find("x_scale").constant().data<float>(), before);
  EXPECT_EQ(count_ops("StopGradient"), 0U);
  Floats batch = random(2 * 3 * 64, 21);
  EXPECT_GE(cosine(run(model_, {2, 3, 8, 8}, batch), run(result_, {2, 3, 8, 8}, batch)), 0.9999);
}

// Esser et al. 2020, equation 3, times 1 / sqrt(elements of a sample * largest code).
TEST_F(Qat, AScaleOfActivationsHasTheStatedGradient) {
  model_ = {};
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
  model_ = OwnedGraph::take(raw);
  constexpr size_t kRows = 8, kIn = 4;
  build([&](EditView edit) {
    Value x = input(edit, "x", {kRows, kIn});
    Value y = node(edit, "MatMul", {x, weight(edit, "w", {kIn, 3}, 5)}, "product");
    Value loss = node(edit, "ReduceSum", {y}, "loss", {{"keepdims", 0}});
    ASSERT_EQ(text_of(edit.output("loss", loss)), "");
  });
  json given{{"data", data("x", {kIn}, 64, 20)}, {"scales", "all"}, {"activations", "s8"}};
  ASSERT_EQ(apply("quantizer.qat", given), "");
  const double step = *result_.view().find("x_step").constant().data<float>();
  std::swap(model_, result_);
  const std::vector<double> w = numbers(model_.view().find("w")),
                            steps = numbers(model_.view().find("w_step"));
  const Floats x = random(kRows * kIn, 30, 3);
  double expected = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double ratio = x[i] / step;
    const double slope = ratio <= -128 ? -128 : ratio >= 127 ? 127 : std::nearbyint(ratio) - ratio;
    for (size_t c = 0; c < 3; ++c) {
      const double code = std::nearbyint(w[i % kIn * 3 + c] / steps[c]);
      expected += slope * steps[c] * std::clamp(code, -127.0, 127.0);
    }
  }
  ASSERT_EQ(apply("autodiff.grad", {{"wrt", {"x_step"}}}), "");
  const Floats got = run(result_, {kRows, kIn}, x);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_NEAR(got[0], expected / std::sqrt(127.0 * kIn), 1e-3 * std::abs(expected));
}

TEST_F(Qat, WithoutTrainingItConvertsToWhatStaticMakes) {
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->clone(model_.get(), &raw))), "");
  OwnedGraph before = OwnedGraph::take(raw);
  ASSERT_EQ(apply("quantizer.static", options()), "");
  OwnedGraph expected = std::move(result_);
  model_ = std::move(before);
  OwnedGraph got = converted(options());

  EXPECT_EQ(got.view().n_nodes(), expected.view().n_nodes());
  ASSERT_EQ(got.view().constants().size(), expected.view().constants().size());
  for (Value wanted : expected.view().constants()) {
    SCOPED_TRACE(wanted.name());
    Value found = got.view().find(wanted.name());
    ASSERT_TRUE(found && found.is_constant());
    EXPECT_EQ(found.dtype(), wanted.dtype());
    EXPECT_EQ(found.type().dims, wanted.type().dims);
    std::vector<double> a = numbers(found), b = numbers(wanted);
    ASSERT_EQ(a.size(), b.size());
    bool is_code = !is_float(wanted.dtype());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], is_code ? 1 : 1e-6 * std::abs(b[i]));
  }
}

TEST_F(Qat, ComputesWhatTheConvertedModelComputes) {
  ASSERT_EQ(apply("quantizer.qat", options()), "");
  Floats batch = random(2 * 3 * 64, 21);
  Floats trained = run(result_, {2, 3, 8, 8}, batch);
  model_ = std::move(result_);
  ASSERT_EQ(apply("quantizer.convert", json::object()), "");
  Floats stored = run(result_, {2, 3, 8, 8}, batch);

  // Biases are rounded to int32, which can move an activation by one step before the mean.
  float step = *result_.view().find("relu_b_scale").constant().data<float>();
  ASSERT_EQ(stored.size(), trained.size());
  for (size_t i = 0; i < stored.size(); ++i)
    EXPECT_NEAR(stored[i], trained[i], step);
  EXPECT_EQ(report_["weights"], json({"wa", "wb", "wf"}));
  EXPECT_EQ(report_["biases"], 2);
  EXPECT_EQ(count_ops("StopGradient"), 0u);
  EXPECT_FALSE(result_.view().find("wa"));
}

TEST_F(Qat, FewerBitsLeaveFewerValues) {
  OwnedGraph got = converted(options({{"weight_bits", 3}}));

  for (const char* name : {"wa_quantized", "wb_quantized", "wf_quantized"})
    for (double code : numbers(got.view().find(name)))
      EXPECT_LE(std::abs(code), 3) << name;
}

TEST_F(Qat, AChannelOfZerosStaysZero) {
  build([&](EditView edit) {
    std::vector<float> some(8 * 5);
    for (size_t i = 0; i < some.size(); ++i)
      some[i] = i % 5 == 2 ? 0.0F : 1.0F;
    auto zeros = edit.constant<float>(TN_F32, {8, 5}, some, "wz");
    ASSERT_EQ(text_of(edit.set_input(edit.graph().find("fc").producer(), 1, *zeros)), "");
  });
  OwnedGraph got = converted(options());

  EXPECT_EQ(numbers(got.view().find("wz_scale"))[2], 1);
  EXPECT_EQ(numbers(got.view().find("wz_quantized"))[2], 0);
  EXPECT_EQ(numbers(got.view().find("wz_quantized"))[3], 127);
}

TEST_F(Qat, WeightsWithZerosAreMaskedAndOthersAreNot) {
  build([&](EditView edit) {
    std::vector<float> some(8 * 5, 1);
    some[7] = some[11] = 0;
    auto zeros = edit.constant<float>(TN_F32, {8, 5}, some, "wz");
    ASSERT_EQ(text_of(edit.set_input(edit.graph().find("fc").producer(), 1, *zeros)), "");
  });
  ASSERT_EQ(apply("quantizer.qat", options()), "");

  EXPECT_EQ(reads("wb_rounded")[0], "wb");
  const Value mask = result_.view().find("wz_mask");
  ASSERT_TRUE(mask);
  const std::vector<double> stays = numbers(mask);
  for (size_t i = 0; i < stays.size(); ++i)
    EXPECT_EQ(stays[i], i == 7 || i == 11 ? 0 : 1) << i;
  std::swap(model_, result_);
  ASSERT_EQ(apply("quantizer.convert", json::object()), "");
  EXPECT_FALSE(result_.view().find("wz_mask"));
  EXPECT_EQ(numbers(result_.view().find("wz_quantized"))[11], 0);
}

// A layer that begins as zeros, or a new output channel of one, has nothing that was pruned.
TEST_F(Qat, ChannelsOfNothingButZerosAreTrainedUnlessAllStay) {
  build([&](EditView edit) {
    std::vector<float> some(8 * 5, 1);
    for (size_t i = 3; i < some.size(); i += 5)
      some[i] = 0;
    some[7] = some[11] = 0;
    auto zeros = edit.constant<float>(TN_F32, {8, 5}, some, "wz");
    auto none = edit.constant<float>(TN_F32, {8, 8, 3, 3}, std::vector<float>(8 * 8 * 9, 0), "wn");
    ASSERT_EQ(text_of(edit.set_input(edit.graph().find("fc").producer(), 1, *zeros)), "");
    ASSERT_EQ(text_of(edit.set_input(edit.graph().find("conv_b").producer(), 1, *none)), "");
  });
  ASSERT_EQ(apply("quantizer.qat", options()), "");
  EXPECT_EQ(report_["zeros"], (json{{"held", 2}, {"trained", 8 + 8 * 8 * 9}}));
  EXPECT_EQ(reads("wn_rounded")[0], "wn");
  const std::vector<double> stays = numbers(result_.view().find("wz_mask"));
  for (size_t i = 0; i < stays.size(); ++i)
    EXPECT_EQ(stays[i], i == 7 || i == 11 ? 0 : 1) << i;

  ASSERT_EQ(apply("quantizer.qat", options({{"zeros", "all"}})), "");
  EXPECT_EQ(report_["zeros"], (json{{"held", 10 + 8 * 8 * 9}, {"trained", 0}}));
  EXPECT_TRUE(result_.view().find("wn_mask"));
  ASSERT_EQ(apply("quantizer.qat", options({{"zeros", "train"}})), "");
  EXPECT_EQ(report_["zeros"], (json{{"held", 0}, {"trained", 10 + 8 * 8 * 9}}));
  EXPECT_FALSE(result_.view().find("wz_mask"));
}

TEST_F(Qat, ObservingAgainMovesRangesTowardsWhatIsSeen) {
  ASSERT_EQ(apply("quantizer.qat", options({{"observer", "minmax"}})), "");
  double before = *result_.view().find("x_scale").constant().data<float>();
  model_ = std::move(result_);
  Floats numbers = random(16 * 3 * 64, 30, 4);  // four times as wide
  json given{{"data", data_of_numbers("x", {16, 3, 8, 8}, numbers)}, {"observer", "minmax"}};

  given["momentum"] = 0;
  ASSERT_EQ(apply("quantizer.observe", given), "");
  double now = *result_.view().find("x_scale").constant().data<float>();
  given["momentum"] = 0.75;
  ASSERT_EQ(apply("quantizer.observe", given), "");
  double between = *result_.view().find("x_scale").constant().data<float>();

  auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  EXPECT_NEAR(now, (*high - *low) / 255, 1e-6);
  EXPECT_NEAR(between, 0.75 * before + 0.25 * now, 0.002 * now);  // the zero point is rounded
  EXPECT_THAT(reads("pool_quantized"), ElementsAre("pool", "relu_a_scale", "relu_a_zero_point"));
}

TEST_F(Qat, RefusesWhatIsQuantizedAndConvertsOnlyWhatIsTrained) {
  EXPECT_THAT(apply("quantizer.convert", json::object()),
              HasSubstr("nothing to convert: expected float weights behind QuantizeLinear"));
  EXPECT_THAT(apply("quantizer.observe", options()),
              HasSubstr("activations behind QuantizeLinear"));
  ASSERT_EQ(apply("quantizer.static", options()), "");
  model_ = std::move(result_);
  EXPECT_THAT(apply("quantizer.qat", options()), HasSubstr("the model is already quantized (node"));
  EXPECT_THAT(apply("quantizer.convert", json::object()), HasSubstr("nothing to convert"));
  EXPECT_THAT(apply("quantizer.qat", options({{"weight_bits", 1}})), HasSubstr("weight_bits"));
}

}  // namespace
}  // namespace tenon::test
