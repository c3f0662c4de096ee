// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "augment_test.hpp"

namespace tenon::test {
namespace {

class Mixing : public AugmentTest {
 protected:
  const std::vector<uint64_t> kThree = {0, 1, 2};  // classes 0, 1, 2
};

// Row i of the labels: `share` of class i, the rest of the one before.
void expect_shares(const std::vector<float>& labels, float share) {
  for (size_t i = 0; i < 3; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      float wanted = c == i ? share : c == (i + 2) % 3 ? 1 - share : 0;
      EXPECT_NEAR(labels[i * 3 + c], wanted, 1e-6) << i << " " << c;
    }
  }
}

TEST_F(Mixing, MixupIsTheMeanThatTheLabelsSay) {
  Component plain = counted("float32", 3, 4, 5);
  Component data = made(plain, "augment.mixup", {{"classes", 3}});
  EXPECT_EQ(fields(data)[1]["shape"], json::array({3}));
  EXPECT_EQ(fields(data)[1]["dtype"], "float32");
  std::vector<float> given = take(plain, kThree, 0);
  for (uint64_t seed : {1, 2, 3}) {
    std::vector<float> labels = take(data, kThree, seed, 1), images = take(data, kThree, seed);
    float share = labels[0];
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 1);
    expect_shares(labels, share);
    for (size_t i = 0; i < images.size(); ++i)
      EXPECT_NEAR(images[i], share * given[i] + (1 - share) * given[(i + 40) % 60], 1e-6);
  }
}

TEST_F(Mixing, CutmixTakesABoxAsLargeAsTheLabelsSay) {
  Component plain = counted("uint8", 3, 8, 8);
  Component data = made(plain, "augment.cutmix", {{"classes", 3}});
  std::vector<float> given = take(plain, kThree, 0);
  bool has_box = false;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<float> labels = take(data, kThree, seed, 1), images = take(data, kThree, seed);
    size_t taken = 0;
    int64_t low[] = {8, 8}, high[] = {-1, -1};
    for (size_t i = 0; i < images.size(); ++i) {
      if (images[i] == given[i]) continue;
      EXPECT_EQ(images[i], given[(i + 128) % 192]);
      if (i >= 64) continue;
      ++taken;
      int64_t at[] = {static_cast<int64_t>(i) / 8, static_cast<int64_t>(i) % 8};
      for (int axis : {0, 1}) {
        low[axis] = std::min(low[axis], at[axis]);
        high[axis] = std::max(high[axis], at[axis]);
      }
    }
    if (taken) {
      EXPECT_EQ(static_cast<int64_t>(taken), (high[0] - low[0] + 1) * (high[1] - low[1] + 1));
    }
    expect_shares(labels, 1 - static_cast<float>(taken) / 64);
    has_box = has_box || taken;
  }
  EXPECT_TRUE(has_box);
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (8 a + 4).
TEST_F(Mixing, SharesAreBetaDistributed) {
  Component plain = counted("float32", 3, 1, 1);
  for (double alpha : {0.2, 1.0, 3.0}) {
    Component data = made(plain, "augment.mixup", {{"classes", 3}, {"alpha", alpha}});
    constexpr int kDraws = 4000;
    double sum = 0, squares = 0;
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      double share = take(data, kThree, seed, 1)[0];
      sum += share;
      squares += share * share;
    }
    double mean = sum / kDraws, variance = 1 / (8 * alpha + 4);
    EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws - mean * mean, variance, 0.1 * variance) << alpha;
  }
}

// Both gamma numbers are below what a double holds, and nearly all shares are 0 or 1.
TEST_F(Mixing, SharesOfATinyAlphaAreOfOneSample) {
  Component data =
      made(counted("float32", 3, 1, 1), "augment.mixup", {{"classes", 3}, {"alpha", 1e-4}});
  int n_mixed = 0, n_own = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    double share = take(data, kThree, seed, 1)[0];
    n_mixed += share > 0.01 && share < 0.99;
    n_own += share > 0.5;
  }
  EXPECT_LE(n_mixed, 2);
  EXPECT_NEAR(n_own, 100, 30);
}

TEST_F(Mixing, GoesOverEachOther) {
  Component data =
      made(made(counted("float32", 3, 4, 4), "augment.mixup", {{"classes", 3}}), "augment.cutmix");
  std::vector<float> labels = take(data, kThree, 3, 1);
  for (size_t i = 0; i < 9; i += 3)
    EXPECT_NEAR(labels[i] + labels[i + 1] + labels[i + 2], 1, 1e-6);
}

TEST_F(Mixing, RefusesWhatItCannotMix) {
  EXPECT_THAT(refused(counted("uint8", 3, 4, 4), "augment.mixup", {{"classes", 3}}),
              HasSubstr("put augment.normalize before it"));
  Component data = counted("float32", 3, 4, 4);
  EXPECT_THAT(refused(data, "augment.mixup"), HasSubstr("option classes"));
  EXPECT_THAT(refused(data, "augment.mixup", {{"classes", 3}, {"label", "class"}}),
              HasSubstr("expected one of image, label, got 'class'"));
  Component few = made(data, "augment.mixup", {{"classes", 2}});
  Collected out(ctx_);
  EXPECT_THAT(batch(few, {0, 1, 2}, &out), HasSubstr("label 2 of sample 2: expected 0 to 1"));
}

}  // namespace
}  // namespace tenon::test
