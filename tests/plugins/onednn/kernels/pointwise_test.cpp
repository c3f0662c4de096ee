// SPDX-License-Identifier: Apache-2.0
// Fused programs against f64 loops, over layouts, types and tile boundaries.

#include "kernels/pointwise.h"

#include <algorithm>
#include <cstring>

#include "expr_nodes.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

// tanh(a*b+a)*0.5 + exp(-a)*b - sqrt(a+1)
std::vector<tn_expr_node> busy_program() {
  return {input(0),
          input(1),
          op(TN_EXPR_MUL, 0, 1),
          op(TN_EXPR_ADD, 2, 0),
          op(TN_EXPR_TANH, 3),
          constant(0.5),
          op(TN_EXPR_MUL, 4, 5),
          op(TN_EXPR_NEG, 0),
          op(TN_EXPR_EXP, 7),
          op(TN_EXPR_MUL, 8, 1),
          op(TN_EXPR_ADD, 6, 9),
          constant(1),
          op(TN_EXPR_ADD, 0, 11),
          op(TN_EXPR_SQRT, 12),
          op(TN_EXPR_SUB, 10, 13)};
}
double busy(double a, double b) {
  return std::tanh(a * b + a) * 0.5 + std::exp(-a) * b - std::sqrt(a + 1);
}

std::vector<int64_t> dense(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (uint64_t d = dims.size(); d-- > 0; stride *= dims[d])
    strides[d] = stride;
  return strides;
}

class Pointwise : public EachLevel {
 protected:
  // Makes and runs; outputs take the last node.
  void run(const std::vector<tn_expr_node>& nodes,
           const std::vector<int64_t>& dims,
           const std::vector<PointwiseEdge>& inputs,
           const std::vector<const void*>& sources,
           const PointwiseEdge& output,
           void* target) {
    const uint32_t result = static_cast<uint32_t>(nodes.size()) - 1;
    PointwisePlan plan;
    ASSERT_EQ(plan.make({nodes, {&result, 1}, dims, inputs, {&output, 1}}), "");
    plan.run(context_, sources, {&target, 1});
  }
};

TEST_P(Pointwise, AgreesWithF64AtEveryLength) {
  const std::vector<float> a = uniform(5000, -0.9F, 4.0F);
  const std::vector<float> b = uniform(5000, -2.0F, 2.0F, 2);
  for (int64_t n : {1, 3, 15, 16, 17, 63, 64, 1000, 1024, 1025, 5000}) {
    const PointwiseEdge edge{ElementType::kF32, {}, {1}};
    std::vector<float> y(static_cast<uint64_t>(n) + 1, 7.0F);
    run(busy_program(), {n}, {edge, edge}, {a.data(), b.data()}, edge, y.data());

    for (uint64_t i = 0; i + 1 < y.size(); ++i)
      ASSERT_NEAR(y[i], busy(a[i], b[i]), 2e-6) << n;
    EXPECT_EQ(y.back(), 7.0F);
  }
}

// Each broadcast of b over a [3, 5, 7, 70].
TEST_P(Pointwise, BroadcastsOverAnyAxes) {
  const std::vector<int64_t> dims = {3, 5, 7, 70};
  const std::vector<int64_t> full = dense(dims);
  const std::vector<float> a = uniform(7350, -0.9F, 4.0F);
  const std::vector<float> b = uniform(7350, -2.0F, 2.0F, 2);
  for (uint32_t mask = 0; mask < 16; ++mask) {
    std::vector<int64_t> kept = dims;
    for (uint32_t d = 0; d < 4; ++d)
      kept[d] = (mask >> d & 1) != 0 ? dims[d] : 1;
    std::vector<int64_t> strides = dense(kept);
    for (uint32_t d = 0; d < 4; ++d)
      strides[d] *= (mask >> d & 1) != 0 ? 1 : 0;
    std::vector<float> y(7350);
    run(busy_program(), dims, {{ElementType::kF32, {}, full}, {ElementType::kF32, {}, strides}},
        {a.data(), b.data()}, {ElementType::kF32, {}, full}, y.data());

    for (int64_t i = 0; i < 7350; ++i) {
      int64_t at = 0;
      for (uint32_t d = 0; d < 4; ++d)
        at += i / full[d] % dims[d] * strides[d];
      const uint64_t k = static_cast<uint64_t>(i);
      ASSERT_NEAR(y[k], busy(a[k], b[static_cast<uint64_t>(at)]), 2e-6) << mask << " at " << i;
    }
  }
}

// Each broadcast of b over [60, 5, length], whose rows are laid out in tiles.
TEST_P(Pointwise, BroadcastsOverShortRows) {
  const std::vector<float> a = uniform(60 * 5 * 40, -0.9F, 4.0F);
  const std::vector<float> b = uniform(60 * 5 * 40, -2.0F, 2.0F, 2);
  for (int64_t length : {1, 2, 3, 7, 8, 15, 16, 17, 31, 40}) {
    const std::vector<int64_t> dims = {60, 5, length};
    const std::vector<int64_t> full = dense(dims);
    for (uint32_t mask = 0; mask < 8; ++mask) {
      std::vector<int64_t> kept = dims;
      for (uint32_t d = 0; d < 3; ++d)
        kept[d] = (mask >> d & 1) != 0 ? dims[d] : 1;
      std::vector<int64_t> strides = dense(kept);
      for (uint32_t d = 0; d < 3; ++d)
        strides[d] *= (mask >> d & 1) != 0 ? 1 : 0;
      std::vector<float> y(static_cast<uint64_t>(300 * length) + 1, 7.0F);
      run(busy_program(), dims, {{ElementType::kF32, {}, full}, {ElementType::kF32, {}, strides}},
          {a.data(), b.data()}, {ElementType::kF32, {}, full}, y.data());

      for (int64_t i = 0; i < 300 * length; ++i) {
        int64_t at = 0;
        for (uint32_t d = 0; d < 3; ++d)
          at += i / full[d] % dims[d] * strides[d];
        const uint64_t k = static_cast<uint64_t>(i);
        ASSERT_NEAR(y[k], busy(a[k], b[static_cast<uint64_t>(at)]), 2e-6) << mask << " at " << i;
      }
      EXPECT_EQ(y.back(), 7.0F);
    }
  }
}

// Channels-last output [2, 9, 9, 20] in NCHW order of dims, per-channel operand, NCHW operand.
TEST_P(Pointwise, MixesLayouts) {
  const std::vector<int64_t> dims = {2, 20, 9, 9};
  const std::vector<int64_t> nhwc = {1620, 1, 180, 20};
  const std::vector<float> a = uniform(3240, -1, 1);
  const std::vector<float> b = uniform(3240, -1, 1, 2);
  const std::vector<float> c = uniform(20, -1, 1, 3);
  std::vector<float> y(3240);
  run({input(0), input(1), input(2), op(TN_EXPR_MUL, 0, 2), op(TN_EXPR_ADD, 3, 1)}, dims,
      {{ElementType::kF32, {}, nhwc},
       {ElementType::kF32, {}, dense(dims)},
       {ElementType::kF32, {}, {0, 1, 0, 0}}},
      {a.data(), b.data(), c.data()}, {ElementType::kF32, {}, nhwc}, y.data());

  for (uint64_t n = 0; n < 2; ++n) {
    for (uint64_t ch = 0; ch < 20; ++ch) {
      for (uint64_t p = 0; p < 81; ++p) {
        const uint64_t last = n * 1620 + p * 20 + ch;
        ASSERT_NEAR(y[last], a[last] * c[ch] + b[n * 1620 + ch * 81 + p], 1e-6);
      }
    }
  }
}

TEST_P(Pointwise, ConvertsAtTheEdges) {
  constexpr int64_t kN = 1000;
  std::vector<uint8_t> a(kN);
  std::vector<int64_t> b(kN);
  for (uint64_t i = 0; i < kN; ++i) {
    a[i] = static_cast<uint8_t>(i * 7);
    b[i] = static_cast<int64_t>(i) - 500;
  }
  std::vector<int8_t> y(kN);
  run({input(0), input(1), op(TN_EXPR_ADD, 0, 1)}, {kN},
      {{ElementType::kU8, {0.25F, 100}, {1}}, {ElementType::kI64, {}, {1}}}, {a.data(), b.data()},
      {ElementType::kS8, {4.0F, -3}, {1}}, y.data());

  for (uint64_t i = 0; i < kN; ++i) {
    const double real = (a[i] - 100) * 0.25 + static_cast<double>(b[i]);
    EXPECT_EQ(y[i], std::clamp(std::nearbyint(real / 4) - 3, -128.0, 127.0)) << i;
  }
}

// One output takes what another is written over, whichever is stored first.
TEST_P(Pointwise, StoresASourceThatIsWrittenOver) {
  const std::vector<float> before = uniform(96, -2, 2);
  const std::vector<tn_expr_node> nodes = {input(0), op(TN_EXPR_NEG, 0)};
  const std::vector<int64_t> dims = {96};
  const PointwiseEdge edge{ElementType::kF32, {}, {1}};
  for (const uint32_t first : {0U, 1U}) {
    std::vector<float> x = before, other(96);
    const uint32_t results[] = {first, 1 - first};
    const PointwiseEdge outputs[] = {edge, edge};
    PointwisePlan plan;
    ASSERT_EQ(plan.make({nodes, results, dims, {&edge, 1}, outputs}), "");
    const void* const sources[] = {x.data()};
    void* const targets[] = {first == 0 ? other.data() : x.data(),
                             first == 0 ? x.data() : other.data()};
    plan.run(context_, sources, targets);
    EXPECT_EQ(other, before);
    for (size_t i = 0; i < 96; ++i)
      ASSERT_EQ(x[i], -before[i]);
  }
}

TEST_P(Pointwise, WritesSeveralOutputsAndInPlace) {
  std::vector<float> x = uniform(3000, -2, 2);
  const std::vector<float> before = x;
  std::vector<uint8_t> positive(3000);
  const std::vector<tn_expr_node> nodes = {
      input(0),      constant(0),           op(TN_EXPR_GT, 0, 1),
      constant(0.1), op(TN_EXPR_MUL, 0, 3), op(TN_EXPR_SELECT, 2, 0, 4)};
  const std::vector<PointwiseEdge> outputs = {{ElementType::kF32, {}, {1}},
                                              {ElementType::kBool, {}, {1}}};
  const std::vector<uint32_t> results = {5, 2};
  const std::vector<int64_t> dims = {3000};
  PointwisePlan plan;
  ASSERT_EQ(plan.make({nodes, results, dims, {outputs.data(), 1}, outputs}), "");
  const void* source = x.data();
  void* const targets[] = {x.data(), positive.data()};
  plan.run(context_, {&source, 1}, targets);

  for (uint64_t i = 0; i < 3000; ++i) {
    EXPECT_EQ(positive[i], before[i] > 0 ? 1 : 0);
    EXPECT_EQ(x[i], before[i] > 0 ? before[i] : before[i] * 0.1F);
  }
}

TEST_P(Pointwise, CopiesInputsAndConstantsThatAreResults) {
  const std::vector<float> x = uniform(70, -2, 2);
  std::vector<uint16_t> copy(70);
  std::vector<float> fives(70);
  const std::vector<tn_expr_node> nodes = {input(0), constant(5)};
  const std::vector<PointwiseEdge> inputs = {{ElementType::kF32, {}, {1}}};
  const std::vector<PointwiseEdge> outputs = {{ElementType::kBf16, {}, {1}},
                                              {ElementType::kF32, {}, {1}}};
  const std::vector<uint32_t> results = {0, 1};
  const std::vector<int64_t> dims = {70};
  PointwisePlan plan;
  ASSERT_EQ(plan.make({nodes, results, dims, inputs, outputs}), "");
  const void* source = x.data();
  void* const targets[] = {copy.data(), fives.data()};
  plan.run(context_, {&source, 1}, targets);

  EXPECT_EQ(fives, std::vector<float>(70, 5.0F));
  for (uint64_t i = 0; i < 70; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &x[i], 4);
    EXPECT_NEAR(copy[i], bits / 65536.0, 0.51);
  }
}

TEST_P(Pointwise, KeepsAProductThatAnUnreadSumNamesToo) {
  const std::vector<float> x = uniform(70, -2, 2);
  std::vector<float> y(70);
  const PointwiseEdge edge{ElementType::kF32, {}, {1}};
  run({input(0), op(TN_EXPR_MUL, 0, 0), op(TN_EXPR_ADD, 1, 0), op(TN_EXPR_NEG, 1)}, {70}, {edge},
      {x.data()}, edge, y.data());
  for (uint64_t i = 0; i < 70; ++i)
    EXPECT_EQ(y[i], -(x[i] * x[i]));
}

TEST_P(Pointwise, HandlesScalarsAndEmptyShapes) {
  const float x = 3;
  float y = 0;
  run({input(0), op(TN_EXPR_MUL, 0, 0)}, {}, {{ElementType::kF32, {}, {}}}, {&x},
      {ElementType::kF32, {}, {}}, &y);
  EXPECT_EQ(y, 9.0F);
  run({input(0), op(TN_EXPR_MUL, 0, 0)}, {4, 0}, {{ElementType::kF32, {}, {0, 1}}}, {nullptr},
      {ElementType::kF32, {}, {0, 1}}, nullptr);
}

TEST_P(Pointwise, RunsManyLiveValuesInShortTiles) {
  std::vector<tn_expr_node> nodes = {input(0)};
  for (uint32_t i = 1; i <= 100; ++i)
    nodes.push_back(op(TN_EXPR_ADD, i - 1, 0));
  uint32_t sum = 100;
  for (uint32_t i = 0; i < 100; ++i) {
    nodes.push_back(op(TN_EXPR_ADD, sum, i));
    sum = static_cast<uint32_t>(nodes.size()) - 1;
  }
  const std::vector<float> x(500, 1.0F);
  std::vector<float> y(500);
  const PointwiseEdge edge{ElementType::kF32, {}, {1}};
  run(nodes, {500}, {edge}, {x.data()}, edge, y.data());

  EXPECT_EQ(y, std::vector<float>(500, 101 + 100 * 101 / 2));
}

TEST(PointwisePlan, RefusesWhatItCannotRun) {
  const PointwiseEdge edge{ElementType::kF32, {}, {1}};
  const std::vector<int64_t> dims = {4};
  auto why = [&](const std::vector<tn_expr_node>& nodes, uint32_t result,
                 const PointwiseEdge& out) {
    PointwisePlan plan;
    return plan.make({nodes, {&result, 1}, dims, {&edge, 1}, {&out, 1}});
  };
  EXPECT_EQ(why({input(0), op(TN_EXPR_NEG, 0)}, 1, edge), "");
  EXPECT_NE(why({}, 0, edge), "");
  EXPECT_NE(why({input(1)}, 0, edge), "");
  EXPECT_NE(why({input(0), op(TN_EXPR_NEG, 1)}, 1, edge), "");
  EXPECT_NE(why({input(0), op(TN_EXPR_BITNOT, 0)}, 1, edge), "");
  EXPECT_NE(why({input(0), op(100000, 0)}, 1, edge), "");
  EXPECT_NE(why({input(0), op(200, 0)}, 1, edge), "");
  EXPECT_NE(why({input(0)}, 7, edge), "");
  EXPECT_NE(why({input(0)}, 0, {ElementType::kF32, {}, {2}}), "");
  EXPECT_NE(why({input(0)}, 0, {ElementType::kF32, {}, {}}), "");
}

TENON_EACH_LEVEL(Pointwise);

}  // namespace
}  // namespace tenon::onednn::kernels
