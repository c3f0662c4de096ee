// SPDX-License-Identifier: Apache-2.0
// Attention on AMX tiles against loops in f64: head sizes, lengths, masks, layouts, result types.

#include "kernels/tile_attention.h"

#include "attention_problem.h"

namespace tenon::onednn::kernels {
namespace {

using TileAttention = OnTiles;

struct Problem : AttentionProblem<TileAttentionArgs, uint16_t> {
  using AttentionProblem::AttentionProblem;

  template <class T>
  std::vector<T> run(ElementType type) {
    return AttentionProblem::run<T>(type, [](const TileAttentionArgs& call) {
      EXPECT_TRUE(takes_tile_attention(call));
      tile_attention({}, call);
    });
  }
};

constexpr double kTolerance = 6e-3;  // bf16 weights: 2^-9 of a result of at most 2

TEST_F(TileAttention, AgreesWithF64) {
  for (const AttentionShape& shape : kAttentionShapes) {
    Problem problem(shape);
    expect_near(problem.run<float>(ElementType::kF32), problem.want(), kTolerance);
  }
}

// One query and three keys, worked out by hand.
TEST_F(TileAttention, GivesTheKnownExample) {
  Problem problem({1, 1, 1, 3, 2, 2});
  auto words = [](std::initializer_list<float> values) {
    std::vector<uint16_t> made;
    for (float value : values)
      made.push_back(to_bf16(value));
    return made;
  };
  const auto q = words({1, 0}), k = words({0, 0, 2, 0, -1, 0}), v = words({1, 0, 0, 1, 1, 1});
  problem.args.q = q.data();
  problem.args.k = k.data();
  problem.args.v = v.data();
  const auto y = problem.run<float>(ElementType::kF32);
  EXPECT_NEAR(y[0], 0.2663, 1e-3);
  EXPECT_NEAR(y[1], 0.8216, 2e-3);
}

TEST_F(TileAttention, AddsMasksThatBroadcast) {
  for (const AttentionShape& shape : kAttentionShapes) {
    for (bool is_of_rows : {false, true}) {
      Problem problem(shape);
      problem.add_mask(is_of_rows);
      expect_near(problem.run<float>(ElementType::kF32), problem.want(), kTolerance);
    }
  }
}

TEST_F(TileAttention, GivesNanWhereTheFormulaDoes) {
  Problem problem({1, 1, 20, 20, 32, 32});
  std::vector<float> mask(20 * 20, 0.0F);
  std::fill_n(&mask[3 * 20], 20, -INFINITY);
  problem.args.mask = mask.data();
  problem.args.mask_strides = {0, 0, 20, 1};
  const auto y = problem.run<float>(ElementType::kF32);
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(std::isnan(y[i]), i / 32 == 3) << "at " << i;
}

// Heads of [tokens, 3, heads, depth], as one product makes q, k and v; keys that lie column by
// column.
TEST_F(TileAttention, ReadsOperandsWhereTheyLie) {
  const AttentionShape shape{2, 4, 37, 37, 32, 32};
  Problem problem(shape);
  const int64_t token = 3 * shape.inner * shape.depth;
  const auto joined =
      random_bf16(static_cast<uint64_t>(shape.outer * shape.rows * token), -2, 2, 6);
  const AttentionStrides strides{shape.rows * token, shape.depth, token, 1};
  problem.args.q = joined.data();
  problem.args.k = joined.data() + shape.inner * shape.depth;
  problem.args.v = joined.data() + 2 * shape.inner * shape.depth;
  problem.args.q_strides = problem.args.k_strides = problem.args.v_strides = strides;
  expect_near(problem.run<float>(ElementType::kF32), problem.want(), kTolerance);
  problem.args.k = problem.k.data();
  problem.args.k_strides = {shape.inner * shape.keys * shape.depth, shape.keys * shape.depth, 1,
                            shape.keys};
  expect_near(problem.run<float>(ElementType::kF32), problem.want(), kTolerance);
}

TEST_F(TileAttention, RoundsToTheTypeOfItsResult) {
  Problem problem({1, 2, 40, 50, 32, 48});
  const std::vector<double> want = problem.want();
  problem.args.dst.quant = {0.01F, 120};
  const auto bytes = problem.run<uint8_t>(ElementType::kU8);
  problem.args.dst.quant = {0.02F, -3};
  const auto quantized = problem.run<int8_t>(ElementType::kS8);
  const auto words = problem.run<uint16_t>(ElementType::kBf16);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(bytes[i], std::clamp(want[i] / 0.01 + 120, 0.0, 255.0), 1.1) << "at " << i;
    ASSERT_NEAR(quantized[i], std::clamp(want[i] / 0.02 - 3, -128.0, 127.0), 0.81) << "at " << i;
    ASSERT_NEAR(from_bf16(words[i]), want[i], 0.012) << "at " << i;
  }
}

}  // namespace
}  // namespace tenon::onednn::kernels
