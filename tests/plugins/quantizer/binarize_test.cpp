// SPDX-License-Identifier: Apache-2.0
// quantizer.binarize and what quantizer.convert makes of it, against loops and the stated gradient.
#include "tenon/sdk/number.hpp"

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class Binarize : public PassTest {
 protected:
  // Three convolutions, the second and third behind a Relu, and a classifier.
  void SetUp() override {
    PassTest::SetUp();
    build([&](EditView edit) {
      Value x = input(edit, "x", {2, 3, 6, 5});
      std::vector<int64_t> pads{1, 1, 1, 1};
      Attr same("pads", pads);
      Value a = node(edit, "Conv", {x, weight(edit, "wa", {8, 3, 3, 3}, 1)}, "a", {same});
      Value ra = node(edit, "Relu", {a}, "ra");
      Value b =
          node(edit, "Conv", {ra, weight(edit, "wb", {6, 8, 3, 3}, 2), weight(edit, "bb", {6}, 3)},
               "b", {same});
      Value rb = node(edit, "Relu", {b}, "rb");
      Value c = node(edit, "Conv", {rb, weight(edit, "wc", {4, 6, 1, 1}, 4)}, "c");
      Value mean = node(edit, "GlobalAveragePool", {c}, "mean");
      Value flat = node(edit, "Flatten", {mean}, "flat");
      Value y = node(edit, "Gemm", {flat, weight(edit, "wf", {4, 5}, 6)}, "fc");
      ASSERT_EQ(text_of(edit.output("y", y)), "");
    });
  }
  json options(json more = json::object()) {
    more["data"] = data("x", {3, 6, 5}, 16, 20);
    return more;
  }
  static Floats numbers(Value constant) {
    const Tensor tensor = constant.constant();
    const auto* data = tensor.data<float>();
    return {data, data + constant.type().elements()};
  }
  // The binarized model, and what is converted from it in `result_`.
  OwnedGraph binarized(const json& given) {
    EXPECT_EQ(apply("quantizer.binarize", given), "");
    std::swap(model_, result_);
    EXPECT_EQ(apply("quantizer.convert", json::object()), "");
    return std::move(model_);
  }
};

TEST_F(Binarize, LeavesTheEndsInFloat) {
  ASSERT_EQ(apply("quantizer.binarize", options()), "");

  EXPECT_THAT(report_["binary"], ElementsAre("b", "c"));
  EXPECT_THAT(reads("a"), ElementsAre("x", "wa"));
  EXPECT_THAT(reads("b"), ElementsAre("ra_sign", "wb_dequantized", "bb"));
  EXPECT_THAT(reads("fc"), ElementsAre("flat", "wf"));
  EXPECT_NE(report_["float"].dump().find("a first layer stays"), std::string::npos);
  EXPECT_NE(report_["float"].dump().find("a last layer stays"), std::string::npos);
}

TEST_F(Binarize, TakesTheEndsAndLeavesWhatIsSkipped) {
  ASSERT_EQ(apply("quantizer.binarize", options({{"ends", "binary"}, {"skip", {"b"}}})), "");

  EXPECT_THAT(report_["binary"], ElementsAre("a", "c", "fc"));
}

TEST_F(Binarize, ConvertsToWhatItHasComputed) {
  for (const char* scales : {"channels", "places"}) {
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->clone(model_.get(), &raw))), "");
    OwnedGraph kept = OwnedGraph::take(raw);
    OwnedGraph trained = binarized(options({{"scales", scales}}));

    EXPECT_EQ(report_["weights"].size(), 2U);
    EXPECT_EQ(report_["signs"], 2);
    EXPECT_EQ(count_ops("StopGradient") + count_ops("Clip"), 0U);
    EXPECT_EQ(count_ops("Where"), 2U);
    EXPECT_EQ(count_ops("DequantizeLinear"), 2U);
    Value codes = result_.view().find("wb_quantized");
    ASSERT_TRUE(codes);
    EXPECT_EQ(codes.dtype(), TN_I8);
    Floats batch = random(2 * 3 * 30, 21);
    Floats before = run(trained, {2, 3, 6, 5}, batch), after = run(result_, {2, 3, 6, 5}, batch);
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i)
      EXPECT_NEAR(before[i], after[i], 1e-5F);
    model_ = std::move(kept);
  }
}

// The mean of each channel, and the mean size of each filter.
TEST_F(Binarize, BeginsWithMeansOfData) {
  ASSERT_EQ(apply("quantizer.binarize", options()), "");

  const Floats w = numbers(model_.view().find("wc")),
               gamma = numbers(result_.view().find("wc_gamma"));
  for (size_t o = 0; o < 4; ++o) {
    float mean = 0;
    for (size_t i = 0; i < 6; ++i)
      mean += std::abs(w[o * 6 + i]) / 6;
    EXPECT_NEAR(gamma[o], mean, 1e-5F);
  }
  EXPECT_THAT(result_.view().find("ra_threshold").type().dims, ElementsAre(8, 1, 1));
  for (float t : numbers(result_.view().find("ra_threshold")))
    EXPECT_GT(t, 0.0F);  // behind a Relu
  for (float latent : numbers(result_.view().find("wb_latent")))
    EXPECT_LE(std::abs(latent), 1.0F);
}

// y = sum_k gamma s(w_k) s(x_k): slopes for x, w, the threshold and gamma as the estimator has
// them.
TEST_F(Binarize, PassesGradientsStraightThrough) {
  model_ = {};
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
  model_ = OwnedGraph::take(raw);
  constexpr size_t kRows = 3, kIn = 4, kOut = 2;
  build([&](EditView edit) {
    Value x = input(edit, "x", {kRows, kIn});
    Value y = node(edit, "MatMul", {x, weight(edit, "w", {kIn, kOut}, 5)}, "product");
    auto upstream = edit.constant<float>(TN_F32, {kRows, kOut}, random(kRows * kOut, 9), "up");
    Value scaled = node(edit, "Mul", {y, *upstream}, "scaled");
    Value loss = node(edit, "ReduceSum", {scaled}, "loss", {{"keepdims", 0}});
    ASSERT_EQ(text_of(edit.output("loss", loss)), "");
  });
  json given{{"ends", "binary"}, {"data", data("x", {kIn}, 40, 20)}};
  ASSERT_EQ(apply("quantizer.binarize", given), "");
  const Floats w = numbers(result_.view().find("w_latent"));
  const Floats gamma = numbers(result_.view().find("w_gamma"));
  const Floats t = numbers(result_.view().find("x_threshold"));
  const Floats narrowing = numbers(result_.view().find("x_narrowing"));
  const Floats up = numbers(result_.view().find("up"));
  std::swap(model_, result_);
  Floats x = random(kRows * kIn, 30, 1.5F);

  auto sign = [](float v) { return v >= 0 ? 1.0F : -1.0F; };
  auto passes = [](float v) { return std::abs(v) <= 1 ? 1.0F : 0.0F; };
  Floats dx(kRows * kIn, 0), dw(kIn * kOut, 0), dt(kIn, 0), dgamma(kOut, 0);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t k = 0; k < kIn; ++k) {
      const float u = (x[r * kIn + k] - t[k]) * narrowing[k];
      for (size_t c = 0; c < kOut; ++c) {
        const float d = up[r * kOut + c], latent = w[k * kOut + c];
        const float slope = d * gamma[c] * sign(latent) * passes(u) * narrowing[k];
        dx[r * kIn + k] += slope;
        dt[k] -= slope;
        dw[k * kOut + c] += d * gamma[c] * sign(u) * passes(latent);
        dgamma[c] += d * sign(latent) * sign(u);
      }
    }
  }
  const std::pair<const char*, const Floats*> expected[] = {
      {"x", &dx}, {"w_latent", &dw}, {"x_threshold", &dt}, {"w_gamma", &dgamma}};
  for (const auto& [name, slopes] : expected) {
    ASSERT_EQ(apply("autodiff.grad", {{"wrt", {name}}}), "");
    const Floats got = run(result_, {kRows, kIn}, x);
    ASSERT_EQ(got.size(), slopes->size()) << name;
    for (size_t i = 0; i < got.size(); ++i) {
      const bool is_end = name == std::string("w_latent") && std::abs(w[i]) == 1;
      if (is_end) continue;
      EXPECT_NEAR(got[i], (*slopes)[i], 1e-4F) << name << " " << i;
    }
  }
}

// A convolution that the graph gives out, and one that it gives out and reads: both have the
// scales of places and the bias.
TEST_F(Binarize, GivesOutWhatIsScaled) {
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
  model_ = OwnedGraph::take(raw);
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 6, 5});
    auto seven = edit.constant<float>(TN_F32, {8}, Floats(8, 7.0F), "seven");
    Value a = node(edit, "Conv", {x, weight(edit, "wa", {8, 3, 3, 3}, 1, 0.1F), *seven}, "a");
    Value b = node(edit, "Conv", {a, weight(edit, "wb", {8, 8, 1, 1}, 2, 0.1F), *seven}, "b");
    ASSERT_EQ(text_of(edit.output("b", b)), "");
    ASSERT_EQ(text_of(edit.output("a", a)), "");
  });
  std::vector<Floats> found;
  for (const char* scales : {"channels", "places"}) {
    ASSERT_EQ(apply("quantizer.binarize", options({{"ends", "binary"}, {"scales", scales}})), "");
    EXPECT_EQ(report_["binary"].size(), 2U);
    const std::vector<Value> outputs = result_.view().outputs();
    ASSERT_EQ(outputs.size(), 2U);
    EXPECT_EQ(outputs[0].producer().type() == std::string_view("Conv"),
              scales == std::string("channels"));
    EXPECT_EQ(outputs[1].producer().type() == std::string_view("Conv"),
              scales == std::string("channels"));
    found.push_back(run(result_, {2, 3, 6, 5}, random(2 * 3 * 30, 21)));
  }
  ASSERT_EQ(found[0].size(), found[1].size());
  double mean = 0;
  for (size_t i = 0; i < found[0].size(); ++i) {
    EXPECT_NEAR(found[0][i], found[1][i], 1e-4F);  // scales of places begin as 1
    mean += static_cast<double>(found[1][i]) / static_cast<double>(found[0].size());
  }
  EXPECT_NEAR(mean, 7, 2);
}

// Activations first, then weights: the signs of the first stage, and what was trained in them,
// stay.
TEST_F(Binarize, TakesActivationsFirstAndWeightsThen) {
  ASSERT_EQ(apply("quantizer.binarize", options({{"weights", "float"}})), "");
  EXPECT_THAT(reads("b"), ElementsAre("ra_sign", "wb", "bb"));
  const Floats first = numbers(result_.view().find("rb_threshold"));
  Result<Edit> begun = Edit::begin(result_.get());
  ASSERT_TRUE(begun.ok());
  Edit edit = std::move(*begun);
  Floats moved = first;
  for (float& each : moved)
    each += 0.25F;
  auto now = edit.constant<float>(TN_F32, {6, 1, 1}, moved, "moved");
  ASSERT_EQ(text_of(edit.replace(edit.graph().find("rb_threshold"), *now)), "");
  ASSERT_EQ(text_of(edit.commit()), "");
  std::swap(model_, result_);

  ASSERT_EQ(apply("quantizer.binarize", options()), "");

  EXPECT_THAT(report_["binary"], ElementsAre("b", "c"));
  EXPECT_THAT(reads("b"), ElementsAre("ra_sign", "wb_dequantized", "bb"));
  EXPECT_EQ(numbers(result_.view().find("moved")), moved);
  EXPECT_EQ(count_ops("StopGradient"), 4U);  // of two activations and two weights
  std::swap(model_, result_);
  EXPECT_EQ(apply("quantizer.convert", json::object()), "");
  EXPECT_EQ(report_["signs"], 2);
  Floats batch = random(2 * 3 * 30, 21);
  Floats before = run(model_, {2, 3, 6, 5}, batch), after = run(result_, {2, 3, 6, 5}, batch);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_NEAR(before[i], after[i], 1e-5F);
}

// Around the layer and its normalization, from the floats; not where shapes differ, and not again
// by a second stage.
TEST_F(Binarize, AddsShortcuts) {
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
  model_ = OwnedGraph::take(raw);
  build([&](EditView edit) {
    Value x = input(edit, "x", {2, 3, 6, 5});
    auto ones = [&](std::string_view name, float number) {
      return *edit.constant<float>(TN_F32, {3}, Floats(3, number), name);
    };
    Value a = node(edit, "Conv", {x, weight(edit, "wa", {3, 3, 1, 1}, 1)}, "a");
    Value norm =
        node(edit, "BatchNormalization",
             {a, ones("scale", 0), ones("shift", 7), ones("mean", 0), ones("var", 1)}, "norm");
    Value b = node(edit, "Conv", {norm, weight(edit, "wb", {4, 3, 1, 1}, 2)}, "b");
    ASSERT_EQ(text_of(edit.output("b", b)), "");
    ASSERT_EQ(text_of(edit.output("norm", norm)), "");
  });
  const json how{{"ends", "binary"}, {"shortcuts", true}, {"weights", "float"}};
  ASSERT_EQ(apply("quantizer.binarize", options(how)), "");

  EXPECT_EQ(report_["shortcuts"], 1);
  Value norm = result_.view().outputs()[1];
  ASSERT_EQ(norm.producer().type(), "Add");
  EXPECT_EQ(norm.producer().input(1).name(), "x");
  EXPECT_EQ(norm.producer().input(0).name(), "norm");
  std::swap(model_, result_);
  ASSERT_EQ(apply("quantizer.binarize", options({{"ends", "binary"}, {"shortcuts", true}})), "");
  EXPECT_EQ(report_["shortcuts"], 0);
  EXPECT_EQ(result_.view().outputs()[1].producer().type(), "Add");
}

TEST_F(Binarize, RefusesAModelWithoutLayers) {
  EXPECT_THAT(apply("quantizer.binarize", options({{"only", {"mean"}}})), HasSubstr("nothing"));
}

}  // namespace
}  // namespace tenon::test
