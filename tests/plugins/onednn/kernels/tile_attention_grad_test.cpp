// SPDX-License-Identifier: Apache-2.0
// The gradient of attention on AMX tiles against loops in f64: head sizes, lengths, masks, layouts,
// result types.

#include "kernels/tile_attention_grad.h"

#include "attention_grad_problem.h"

namespace tenon::onednn::kernels {
namespace {

using TileAttentionGrad = OnTiles;
using Problem = AttentionGradProblem<TileAttentionGradArgs, uint16_t>;

// What rounding weights and their gradients to bf16 does; ds is a difference, whose operands are
// rounded.
constexpr double kTolerance = 0.005;

void run(const Problem& problem) {
  EXPECT_TRUE(takes_tile_attention_grad(problem.args));
  tile_attention_grad({}, problem.args);
}

TEST_F(TileAttentionGrad, AgreesWithF64) {
  for (const AttentionShape& shape : kAttentionGradShapes) {
    Problem problem(shape);
    run(problem);
    problem.expect_results(kTolerance);
  }
}

TEST_F(TileAttentionGrad, AddsMasksThatBroadcast) {
  for (const AttentionShape& shape : kAttentionGradShapes) {
    for (bool is_of_rows : {false, true}) {
      Problem problem(shape);
      problem.add_mask(is_of_rows, true);
      run(problem);
      problem.expect_results(kTolerance);
    }
  }
}

TEST_F(TileAttentionGrad, LeavesOutWhatIsNotAskedFor) {
  for (int asked = 0; asked < 3; ++asked) {
    Problem problem({1, 2, 140, 50, 32, 48});
    const Problem all = [&] {
      Problem made = problem;
      made.args.dq.data = made.dq.data();
      made.args.dk.data = made.dk.data();
      made.args.dv.data = made.dv.data();
      run(made);
      return made;
    }();
    if (asked != 0) problem.args.dq.data = nullptr;
    if (asked != 1) problem.args.dk.data = nullptr;
    if (asked != 2) problem.args.dv.data = nullptr;
    run(problem);
    const auto none = [](const std::vector<float>& like) {
      return std::vector<float>(like.size(), 77);
    };
    EXPECT_EQ(problem.dq, asked == 0 ? all.dq : none(all.dq));
    EXPECT_EQ(problem.dk, asked == 1 ? all.dk : none(all.dk));
    EXPECT_EQ(problem.dv, asked == 2 ? all.dv : none(all.dv));
  }
}

TEST_F(TileAttentionGrad, GivesNanWhereTheFormulaDoes) {
  Problem problem({1, 1, 20, 24, 32, 32});
  std::vector<float> mask(20 * 24, 0.0F);  // [keys][rows]
  for (size_t key = 0; key < 24; ++key)
    mask[key * 20 + 3] = -INFINITY;
  problem.args.mask = mask.data();
  problem.args.mask_strides = {0, 0, 1, 20};
  run(problem);
  for (size_t i = 0; i < problem.dq.size(); ++i)
    ASSERT_EQ(std::isnan(problem.dq[i]), i / 32 == 3) << "at " << i;
  for (float x : problem.dv)
    ASSERT_TRUE(std::isnan(x));
}

// Heads of [tokens, heads, depth], keys that lie column by column, results as heads too, in bf16.
TEST_F(TileAttentionGrad, ReadsAndWritesWhereOperandsLie) {
  const AttentionShape shape{2, 4, 37, 37, 32, 32};
  Problem problem(shape);
  const int64_t token = shape.inner * shape.depth;
  const AttentionStrides heads{shape.rows * token, shape.depth, token, 1};
  problem.args.q_strides = problem.args.v_strides = problem.args.dy_strides = heads;
  problem.args.k_strides = {shape.inner * shape.keys * shape.depth, shape.keys * shape.depth, 1,
                            shape.keys};
  run(problem);
  problem.expect_results(kTolerance);
  std::vector<uint16_t> rounded(problem.dq.size());
  problem.args.dq = {rounded.data(), ElementType::kBf16, heads};
  run(problem);
  for (int64_t pair = 0; pair < 8; ++pair)
    for (int64_t i = 0; i < 37 * 32; ++i) {
      const int64_t at = pair / 4 * heads.outer + pair % 4 * heads.inner + i / 32 * token + i % 32;
      ASSERT_EQ(rounded[size_t(at)], to_bf16(problem.dq[size_t(pair * 37 * 32 + i)]));
    }
}

}  // namespace
}  // namespace tenon::onednn::kernels
