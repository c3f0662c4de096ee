// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gmock/gmock.h>

#include "algorithms/adaround.hpp"
#include "algorithms/awq.hpp"
#include "algorithms/gptq.hpp"
#include "algorithms/smooth.hpp"

namespace tenon::quantizer {
namespace {

using testing::ElementsAre;

void one_by_one(int64_t n, const std::function<void(int64_t, int64_t)>& body) {
  body(0, n);
}

// One row on the grid of whole numbers.
WeightGrid row_of(std::vector<float> weight) {
  WeightGrid layer;
  layer.rows = 1;
  layer.columns = layer.block = static_cast<int64_t>(weight.size());
  layer.weight = std::move(weight);
  layer.scale = {1};
  layer.zero = {0};
  return layer;
}

// By hand: the inverse of [[2, 1.8], [1.8, 2]] has -0.9 of the diagonal beside it, so what rounding
// 0.4 to 0 leaves out comes back as 0.36 in the other column, which then is 0.76 and goes to 1.
TEST(Gptq, TheSecondColumnMakesUpForTheFirst) {
  const std::vector<double> hessian{2, 1.8, 1.8, 2};
  WeightGrid layer = row_of({0.4F, 0.4F});

  std::vector<float> plain = nearest(layer);
  std::vector<float> codes =
      gptq(layer, hessian, {.damping = 0, .largest_first = false}, one_by_one);

  EXPECT_THAT(plain, ElementsAre(0, 0));
  EXPECT_THAT(codes, ElementsAre(0, 1));
  EXPECT_NEAR(output_error(layer, hessian, plain, one_by_one), 1.216, 1e-6);
  EXPECT_NEAR(output_error(layer, hessian, codes, one_by_one), 0.176, 1e-6);
}

TEST(Gptq, InputsThatAreIndependentChangeNothing) {
  WeightGrid layer = row_of({0.4F, -1.6F, 2.5F, 0.1F});
  const std::vector<double> hessian{3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0};

  EXPECT_EQ(gptq(layer, hessian, {}, one_by_one), nearest(layer));
}

TEST(Gptq, CodesStayOnTheirGrid) {
  WeightGrid layer = row_of({9, -9, 0.4F});
  layer.low = -3;
  layer.high = 2;
  layer.zero = {1};
  const std::vector<double> hessian{2, 1, 1, 1, 2, 1, 1, 1, 2};

  for (float code : gptq(layer, hessian, {}, one_by_one)) {
    EXPECT_GE(code, -3);
    EXPECT_LE(code, 2);
  }
}

TEST(Gptq, WithoutFactorsThereIsNoAnswer) {
  EXPECT_TRUE(gptq(row_of({1, 1}), std::vector<double>{-1, 0, 0, -1}, {}, one_by_one).empty());
}

// x -> x H, row by row.
TimesHessian times(std::vector<double> hessian) {
  return [hessian = std::move(hessian)](std::span<const float> miss, std::span<float> made) {
    const auto n = static_cast<size_t>(std::sqrt(static_cast<double>(hessian.size())));
    for (size_t at = 0; at < miss.size(); ++at) {
      double sum = 0;
      for (size_t k = 0; k < n; ++k)
        sum += static_cast<double>(miss[at / n * n + k]) * hessian[k * n + at % n];
      made[at] = static_cast<float>(sum);
    }
    return true;
  };
}

// The same pair of columns as above: both down misses 1.216, one up and one down 0.176 (by hand).
TEST(Adaround, OneGoesUpForTwoThatWouldGoDown) {
  const std::vector<double> hessian{2, 1.8, 1.8, 2};
  WeightGrid grid = row_of({0.4F, 0.45F});

  std::vector<float> found = adaround(grid, 2, {}, times(hessian), one_by_one);

  EXPECT_THAT(found, ElementsAre(0, 1));
}

// The least of all 2^8 ways up or down, by trying them.
TEST(Adaround, ComesNearTheBestOfAllWays) {
  constexpr int64_t kColumns = 8;
  std::vector<double> inputs, hessian(kColumns * kColumns, 0);
  for (int i = 0; i < 4 * kColumns; ++i)
    inputs.push_back(std::sin(1.7 * i * i + 0.3));
  for (int64_t r = 0; r < 4; ++r)
    for (int64_t a = 0; a < kColumns; ++a)
      for (int64_t b = 0; b < kColumns; ++b)
        hessian[static_cast<size_t>(a * kColumns + b)] +=
            inputs[static_cast<size_t>(r * kColumns + a)] *
            inputs[static_cast<size_t>(r * kColumns + b)];
  WeightGrid grid = row_of({0.4F, -1.6F, 2.45F, 0.1F, -0.3F, 1.55F, -2.6F, 0.7F});
  double mean = 0;
  for (int64_t i = 0; i < kColumns; ++i)
    mean += hessian[static_cast<size_t>(i * (kColumns + 1))] / kColumns;

  std::vector<float> found = adaround(grid, mean, {}, times(hessian), one_by_one);

  double best = 1e30;
  std::vector<float> one(kColumns);
  for (int mask = 0; mask < 1 << kColumns; ++mask) {
    for (size_t c = 0; c < kColumns; ++c)
      one[c] = std::floor(grid.weight[c]) + static_cast<float>(mask >> c & 1);
    best = std::min(best, output_error(grid, hessian, one, one_by_one));
  }
  double plain = output_error(grid, hessian, nearest(grid), one_by_one);
  double error = output_error(grid, hessian, found, one_by_one);
  EXPECT_LT(error, plain / 2);
  EXPECT_LT(error, 4 * best);
  for (size_t c = 0; c < kColumns; ++c)
    EXPECT_LT(std::abs(found[c] - grid.weight[c]), 1) << "up or down, no further";
}

TEST(Adaround, QuantizedValuesStayOnTheirGrid) {
  WeightGrid grid = row_of({9, -9, 0.4F});
  grid.low = -3;
  grid.high = 2;
  const std::vector<double> hessian{2, 1, 1, 1, 2, 1, 1, 1, 2};

  std::vector<float> found = adaround(grid, 2, {.steps = 50}, times(hessian), one_by_one);

  EXPECT_EQ(found[0], 2);
  EXPECT_EQ(found[1], -3);
}

TEST(Adaround, WithoutInputsThereIsNoAnswer) {
  EXPECT_TRUE(adaround(row_of({1, 1}), 0, {}, times({0, 0, 0, 0}), one_by_one).empty());
}

// Channel 1 is a hundred times the others, and its weight a hundredth.
TEST(Smooth, AnOutlierGoesIntoTheWeight) {
  ScaledLayer layer{4, 3, 2};
  layer.inputs = {1, 90, -0.5F, -0.7F, -100, 0.8F, 0.3F, 40, 1, 0.9F, -70, 0.2F};
  layer.weights = {0.5F, 0.005F, -0.8F, -0.6F, 0.01F, 0.7F};
  layer.largest_input = {1, 100, 1};
  layer.largest_weight = {0.6F, 0.01F, 0.8F};

  InputFactors found = smoothed(layer);

  EXPECT_GT(found.exponent, 0.3);
  EXPECT_GT(found.snr_db, found.plain_snr_db + 15);
  EXPECT_GT(found.factor[1], 20 * found.factor[0]);
}

TEST(Smooth, EvenChannelsAndZerosAreLeft) {
  ScaledLayer layer{2, 2, 1};
  layer.inputs = {0, 0, 0, 0};
  layer.weights = {0, 0};
  layer.largest_input = layer.largest_weight = {0, 0};

  InputFactors found = smoothed(layer);

  EXPECT_EQ(found.exponent, -1);
  EXPECT_THAT(found.factor, ElementsAre(1, 1));
}

// One channel carries a hundred times what the others do, and its weights are small in their
// groups.
TEST(Awq, ChannelsThatCarryMuchKeepTheirDigits) {
  ScaledLayer layer{3, 4, 2};
  layer.inputs = {1, 100, -1, 1, -1, 120, 1, 1, 1, -90, 1, -1};
  layer.weights = {0.9F, 0.17F, -0.5F, 0.3F, -0.8F, 0.04F, 0.2F, 0.6F};
  layer.mean_input = {1, 103, 1, 1};

  InputFactors found = activation_aware(layer, 4);

  EXPECT_GT(found.exponent, 0);
  EXPECT_GT(found.snr_db, found.plain_snr_db + 6);
  EXPECT_GT(found.factor[1], found.factor[0]);
}

// The outlier is -8 steps of 1, and the others are one. With 8 / 7 as scale they would be 1.14.
TEST(Awq, BlocksWithAnOutlierAreJudgedWithTheClippedScaleThatTheyWillHave) {
  ScaledLayer layer{8, 8, 1};
  layer.inputs.assign(64, 0);
  for (size_t i = 0; i < 8; ++i)
    layer.inputs[i * 9] = 1;
  layer.weights.assign(8, 1);
  layer.weights[3] = -8;
  layer.mean_input.assign(8, 1.0F / 8);

  EXPECT_GT(activation_aware(layer, 8).plain_snr_db, 35);
}

}  // namespace
}  // namespace tenon::quantizer
