// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gmock/gmock.h>

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
GptqLayer row_of(std::vector<float> weight) {
  GptqLayer layer;
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
  GptqLayer layer = row_of({0.4F, 0.4F});

  std::vector<float> plain = nearest(layer);
  std::vector<float> codes =
      gptq(layer, hessian, {.damping = 0, .largest_first = false}, one_by_one);

  EXPECT_THAT(plain, ElementsAre(0, 0));
  EXPECT_THAT(codes, ElementsAre(0, 1));
  EXPECT_NEAR(output_error(layer, hessian, plain, one_by_one), 1.216, 1e-6);
  EXPECT_NEAR(output_error(layer, hessian, codes, one_by_one), 0.176, 1e-6);
}

TEST(Gptq, InputsThatAreIndependentChangeNothing) {
  GptqLayer layer = row_of({0.4F, -1.6F, 2.5F, 0.1F});
  const std::vector<double> hessian{3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0};

  EXPECT_EQ(gptq(layer, hessian, {}, one_by_one), nearest(layer));
}

TEST(Gptq, CodesStayOnTheirGrid) {
  GptqLayer layer = row_of({9, -9, 0.4F});
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

}  // namespace
}  // namespace tenon::quantizer
