// SPDX-License-Identifier: Apache-2.0
// What pointwise groups store in 8 bits: the quantized values that division, rounding and
// saturation give.

#include "expr_nodes.h"
#include "kernels/pointwise.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

// The parameter: the level that runs.
class PointwiseQuantized : public testing::TestWithParam<Level> {
 protected:
  void SetUp() override {
    if (GetParam() > best_level()) GTEST_SKIP() << "no " << level_name(GetParam()) << " here";
  }
  // What lies at, and next to, the middle between two quantized values, and far outside of them
  // all.
  static std::vector<float> numbers(float scale) {
    std::mt19937 random(3);
    std::vector<float> x = {INFINITY, -INFINITY, NAN, 3e38F, -3e38F, 0.0F, -0.0F, 1e-38F};
    while (x.size() < 4001) {
      float at = (static_cast<float>(random() % 1201) - 600) / 2 * scale;
      for (uint32_t i = random() % 4; i > 0; --i)
        at = std::nextafter(at, random() % 2 == 0 ? INFINITY : -INFINITY);
      x.push_back(at);
    }
    return x;
  }
  void expect_quantized(ElementType type, Quant quant) const {
    const std::vector<float> x = numbers(quant.scale);
    std::vector<uint8_t> got(x.size());
    const tn_expr_node same = input(0);
    const uint32_t result = 0;
    const PointwiseEdge from{ElementType::kF32, {}, {1}};
    const PointwiseEdge to{type, quant, {1}};
    PointwisePlan plan;
    ASSERT_EQ(plan.make({.nodes = {&same, 1},
                         .results = {&result, 1},
                         .dims = std::vector<int64_t>{static_cast<int64_t>(x.size())},
                         .inputs = {&from, 1},
                         .outputs = {&to, 1},
                         .level = GetParam()}),
              "");
    const void* source = x.data();
    void* target = got.data();
    plan.run(make_context(GetParam()), {&source, 1}, {&target, 1});
    const float low = type == ElementType::kU8 ? 0 : -128;
    for (size_t i = 0; i < x.size(); ++i) {
      const float steps = std::nearbyint(x[i] / quant.scale) + static_cast<float>(quant.zero_point);
      const float want = std::isnan(steps) ? low : std::clamp(steps, low, low + 255);
      ASSERT_EQ(got[i], static_cast<uint8_t>(static_cast<int>(want)))
          << x[i] << " / " << quant.scale << " + " << quant.zero_point;
    }
  }
};

TEST_P(PointwiseQuantized, AreThoseOfDivisionWhateverTheScale) {
  for (float scale : {0.25F, 0.0173F, 1.9999999F, 3.1e-7F, 0.1F, 7e12F, 1e-30F, 1e30F}) {
    for (int32_t zero : {0, 77, 255})
      expect_quantized(ElementType::kU8, {scale, zero});
    for (int32_t zero : {-128, 0, 127})
      expect_quantized(ElementType::kS8, {scale, zero});
  }
}

std::string name_of(const testing::TestParamInfo<Level>& info) {
  return level_name(info.param);
}
INSTANTIATE_TEST_SUITE_P(Levels,
                         PointwiseQuantized,
                         testing::Values(Level::kBaseline, Level::kAvx2, Level::kAvx512),
                         name_of);

}  // namespace
}  // namespace tenon::onednn::kernels
