// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "augment_test.hpp"

namespace tenon::test {
namespace {

class Augmented : public AugmentTest {};

float farthest(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  float out = 0;
  for (size_t i = 0; i < a.size(); ++i)
    out = std::max(out, std::abs(a[i] - b[i]));
  return out;
}

TEST_F(Augmented, IsWhatTorchvisionGives) {
  json golden_file = golden("augmentation.json");
  std::vector<int> images = golden_file["images"];
  ASSERT_GE(golden_file["cases"].size(), 40u);
  for (const json& one : golden_file["cases"]) {
    SCOPED_TRACE(cat(one["id"].dump(), one["options"].dump(), one["dtype"].dump()));
    Component data = made(pictures(one["dtype"], "3, 9, 7", images, 2),
                          one["id"].get<std::string>(), one["options"]);
    std::vector<float> got = take(data, {0, 1}, 5);
    EXPECT_EQ(shape_, one["shape"].get<std::vector<int64_t>>());
    json field = fields(data)[0];
    EXPECT_EQ(field["shape"], (std::vector(shape_.begin() + 1, shape_.end())));
    // One step of 255 for bytes, as torchvision itself differs between its ways to compute.
    EXPECT_LE(farthest(got, one["out"]), field["dtype"] == "uint8" ? 1 : 3e-6f);
  }
}

TEST_F(Augmented, PartsAreThoseOfTorchvision) {
  json golden_file = golden("augmentation.json");
  Component data = made(pictures("uint8", "3, 9, 7", golden_file["images"], 2),
                        "augment.resized_crop", golden_file["parts"]["options"]);
  std::set<size_t> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<float> got = take(data, {0}, seed);
    const json& outs = golden_file["parts"]["outs"];
    size_t at = 0;
    while (at < outs.size() && farthest(got, outs[at]) > 1)
      ++at;
    ASSERT_LT(at, outs.size()) << "seed " << seed << " gave none of the parts";
    seen.insert(at);
  }
  EXPECT_GT(seen.size(), 12u) << "of 24 places";
}

TEST_F(Augmented, DrawsAreThoseOfTheSeedAndThePlaceInTheBatch) {
  Component data = made(counted("float32", 4, 8, 8), "augment.crop", {{"padding", 3}});
  std::vector<float> both = take(data, {2, 2}, 11);
  EXPECT_EQ(both, take(data, {2, 2}, 11));
  EXPECT_NE(both, take(data, {2, 2}, 12));
  std::vector<float> first(both.begin(), both.begin() + 64), second(both.begin() + 64, both.end());
  EXPECT_NE(first, second) << "two samples of a batch";
  EXPECT_EQ(first, take(data, {2}, 11)) << "alone as beside another one";
  EXPECT_NE(first,
            take(made(counted("float32", 4, 8, 8), "augment.crop", {{"padding", 3}, {"seed", 1}}),
                 {2}, 11));
}

TEST_F(Augmented, TwoOfAKindDrawApart) {
  Component once = made(counted("float32", 64, 1, 2), "augment.flip");
  Component twice = made(once, "augment.flip");
  std::vector<uint64_t> index(64);
  for (size_t i = 0; i < index.size(); ++i)
    index[i] = i;
  std::vector<float> flipped = take(twice, index, 3);
  int n_flips = 0;
  for (size_t i = 0; i < flipped.size(); i += 2)
    n_flips += flipped[i] > flipped[i + 1];
  // The same draws in both would flip each picture back: 0 flips.
  EXPECT_GT(n_flips, 16);
  EXPECT_LT(n_flips, 48);
}

TEST_F(Augmented, ErasesAShareOfTheArea) {
  json options{{"p", 1}, {"scale", {0.25, 0.25}}, {"ratio", {1, 1}}, {"value", 77}};
  std::vector<int> white(2 * 16 * 16, 255);
  Component data = made(pictures("uint8", "2, 16, 16", white, 1), "augment.erasing", options);
  std::vector<float> got = take(data, {0}, 1);
  EXPECT_EQ(std::count(got.begin(), got.end(), 77.0f), 2 * 64);
  EXPECT_EQ(std::count(got.begin(), got.end(), 255.0f), 2 * (256 - 64));
  options["p"] = 0;
  got = take(made(pictures("uint8", "2, 16, 16", white, 1), "augment.erasing", options), {0}, 1);
  EXPECT_EQ(std::count(got.begin(), got.end(), 255.0f), 512);
}

TEST_F(Augmented, NoiseHasItsMeanAndDeviation) {
  json options{{"sigma", 0.5}, {"mean", 0.25}, {"clip", false}};
  Component data = made(pictures("float32", "1, 100, 100", std::vector<int>(10000, 0), 1),
                        "augment.noise", options);
  double sum = 0, squares = 0;
  for (float x : take(data, {0}, 1)) {
    sum += x;
    squares += x * x;
  }
  double mean = sum / 10000;
  EXPECT_NEAR(mean, 0.25, 0.02);  // four standard errors
  EXPECT_NEAR(std::sqrt(squares / 10000 - mean * mean), 0.5, 0.015);
  Component bytes = made(pictures("uint8", "1, 100, 100", std::vector<int>(10000, 128), 1),
                         "augment.noise", {{"sigma", 0.1}});
  sum = 0;
  for (float x : take(bytes, {0}, 1))
    sum += x;
  EXPECT_NEAR(sum / 10000, 128, 1.1);
}

TEST_F(Augmented, LeavesOtherFieldsAlone) {
  Component data = made(counted("uint8", 4, 6, 6), "augment.resized_crop", {{"size", 3}});
  EXPECT_THAT(take(data, {3, 1, 2}, 0, 1), ElementsAre(0, 1, 2));
  EXPECT_EQ(size(data), 4u);
}

TEST_F(Augmented, RefusesWhatItCannotDo) {
  Component data = counted("uint8", 2, 6, 6);
  EXPECT_THAT(refused(data, "augment.crop", {{"size", 7}}),
              HasSubstr("at most the padded image (6x6), got 7x7"));
  EXPECT_THAT(refused(data, "augment.crop", {{"padding", 6}, {"padding_mode", "reflect"}}),
              HasSubstr("option padding"));
  EXPECT_THAT(refused(data, "augment.flip", {{"field", "picture"}}),
              HasSubstr("expected one of image, label, got 'picture'"));
  EXPECT_THAT(refused(data, "augment.flip", {{"field", "label"}}),
              HasSubstr("expected float32 or uint8, got int64"));
  EXPECT_THAT(refused(data, "augment.resized_crop", {{"scale", {1, 0.5}}}),
              HasSubstr("the lower first"));
  EXPECT_THAT(refused(data, "augment.color_jitter", {{"hue", 0.6}}), HasSubstr("option hue"));
  EXPECT_THAT(refused(data, "augment.color_jitter", {{"hue", nlohmann::json::array()}}),
              HasSubstr("option hue: expected two numbers"));
  EXPECT_THAT(refused(data, "augment.crop", {{"size", nlohmann::json::array()}}),
              HasSubstr("option size: expected one or two numbers"));
  EXPECT_THAT(refused(data, "augment.normalize", {{"mean", {1, 2}}}),
              HasSubstr("expected 1 or 1 numbers"));
  EXPECT_THAT(refused(data, "augment.erasing", {{"fill", "normal"}}),
              HasSubstr("augment.normalize"));
}

}  // namespace
}  // namespace tenon::test
