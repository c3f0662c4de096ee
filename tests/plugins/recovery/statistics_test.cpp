// SPDX-License-Identifier: Apache-2.0
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

class Statistics : public PruningTest {
 protected:
  // x [batch, 2, 1, 2] -> norm1 -> Relu -> norm2 -> y
  void SetUp() override {
    PruningTest::SetUp();
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 2, 1, 2});
      x = norm(edit, x, "norm1", {2, 1}, {0.5F, -1});
      x = norm(edit, relu(edit, x, "relu"), "norm2", {1, 3}, {0, 0});
      ASSERT_EQ(text_of(edit.output("y", x)), "");
    });
  }
  Value norm(EditView edit, Value x, std::string name, Floats scale, Floats shift) {
    auto vector = [&](std::string_view part, const Floats& numbers) {
      auto made = edit.constant<float>(TN_F32, {2}, numbers, cat(name, ".", part));
      EXPECT_TRUE(made.ok());
      return *made;
    };
    return node(edit, "BatchNormalization",
                {x, vector("scale", scale), vector("shift", shift), vector("mean", {7, 7}),
                 vector("variance", {9, 9})},
                name);
  }
  Floats numbers(const char* name) {
    Tensor t = result_.view().find(name).constant();
    return {t.data<float>(), t.data<float>() + element_count(t.dl())};
  }
};

TEST_F(Statistics, AreThoseOfTheInputsInTheOrderOfLayers) {
  constexpr size_t kSamples = 6;
  std::string samples = data("x", {2, 1, 2}, kSamples, 3);
  Floats x = random(kSamples * 4, 3);

  ASSERT_EQ(apply("recovery.statistics", {{"data", samples}, {"batch", kSamples}}), "");

  // By hand: means and biased variances of the channel, then of what the first norm makes of it.
  double scale[] = {2, 1}, shift[] = {0.5, -1};
  for (size_t c = 0; c < 2; ++c) {
    auto moments = [&](auto&& value) {
      double sum = 0, squares = 0;
      for (size_t s = 0; s < kSamples; ++s)
        for (size_t i = 0; i < 2; ++i) {
          double v = value(double{x[s * 4 + c * 2 + i]});
          sum += v;
          squares += v * v;
        }
      double n = 2 * kSamples;
      return std::pair(sum / n, squares / n - sum / n * (sum / n));
    };
    auto [mean, variance] = moments([](double v) { return v; });
    EXPECT_NEAR(numbers("norm1.mean")[c], mean, 1e-5);
    EXPECT_NEAR(numbers("norm1.variance")[c], variance, 1e-5);
    auto [next, next_variance] = moments([&, m = mean, v = variance](double value) {
      return std::max(scale[c] * (value - m) / std::sqrt(v + 1e-5) + shift[c], 0.0);
    });
    EXPECT_NEAR(numbers("norm2.mean")[c], next, 1e-4);
    EXPECT_NEAR(numbers("norm2.variance")[c], next_variance, 1e-4);
  }
  EXPECT_EQ(report_["estimated"].size(), 2);
}

TEST_F(Statistics, OfSeveralBatchesAreAveraged) {
  std::string samples = data("x", {2, 1, 2}, 6, 3);
  Floats x = random(24, 3);

  ASSERT_EQ(apply("recovery.statistics", {{"data", samples}, {"batch", 3}}), "");

  double mean = 0;
  for (size_t s = 0; s < 6; ++s)
    mean += (double{x[s * 4]} + double{x[s * 4 + 1]}) / 12;
  EXPECT_NEAR(numbers("norm1.mean")[0], mean, 1e-5);
}

TEST_F(Statistics, NumbersThatAreNotFiniteAreRefused) {
  Floats x = random(24, 3);
  x[7] = NAN;

  EXPECT_THAT(apply("recovery.statistics", {{"data", data_of_numbers("x", {6, 2, 1, 2}, x)}}),
              HasSubstr("option data: node norm1 reads numbers that are not finite"));
}

TEST_F(Statistics, WithoutNormalizationThereIsNothingToEstimate) {
  std::string samples = data("x", {2, 1, 2}, 6, 3);

  EXPECT_THAT(apply("recovery.statistics", {{"data", samples}, {"skip", "BatchNormalization"}}),
              HasSubstr("no BatchNormalization with statistics of its own is left"));
  EXPECT_THAT(apply("recovery.statistics", json::object()), HasSubstr("data"));
}

}  // namespace
}  // namespace tenon::test
