// SPDX-License-Identifier: Apache-2.0
// The gradient of attention in f32 against loops in f64: head sizes, lengths, masks, layouts,
// result types, threads.

#include "kernels/attention_grad.h"

#include "attention_grad_problem.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class AttentionGradTest : public EachLevel {
 protected:
  using Problem = AttentionGradProblem<AttentionGradArgs, float>;

  void run(const Problem& problem) const {
    EXPECT_TRUE(takes_attention_grad(problem.args));
    attention_grad(context_, problem.args);
  }
};

// Scores of up to 40 are rounded before their exponentials, sums of up to 300 keys.
constexpr double kTolerance = 4e-6;

TEST_P(AttentionGradTest, AgreesWithF64) {
  for (const AttentionShape& shape : kAttentionGradShapes) {
    Problem problem(shape);
    run(problem);
    problem.expect_results(kTolerance);
  }
}

TEST_P(AttentionGradTest, AddsMasksThatBroadcast) {
  for (const AttentionShape& shape : kAttentionGradShapes) {
    for (bool is_of_rows : {false, true}) {
      Problem problem(shape);
      problem.add_mask(is_of_rows, false);
      run(problem);
      problem.expect_results(kTolerance);
    }
  }
}

TEST_P(AttentionGradTest, GivesNanWhereTheFormulaDoes) {
  Problem problem({1, 1, 20, 24, 32, 32});
  std::vector<float> mask(20 * 24, 0.0F);  // [rows][keys]
  std::fill_n(&mask[3 * 24], 24, -INFINITY);
  problem.args.mask = mask.data();
  problem.args.mask_strides = {0, 0, 24, 1};
  run(problem);
  for (size_t i = 0; i < problem.dq.size(); ++i)
    ASSERT_EQ(std::isnan(problem.dq[i]), i / 32 == 3) << "at " << i;
  for (float x : problem.dv)
    ASSERT_TRUE(std::isnan(x));
}

// Heads of [tokens, heads, depth], keys that lie column by column, results as heads too, in bf16;
// what is not asked for is not written.
TEST_P(AttentionGradTest, ReadsAndWritesWhereOperandsLie) {
  const AttentionShape shape{2, 4, 37, 37, 32, 32};
  Problem problem(shape);
  const int64_t token = shape.inner * shape.depth;
  const AttentionStrides heads{shape.rows * token, shape.depth, token, 1};
  problem.args.q_strides = problem.args.v_strides = problem.args.dy_strides = heads;
  problem.args.k_strides = {shape.inner * shape.keys * shape.depth, shape.keys * shape.depth, 1,
                            shape.keys};
  run(problem);
  problem.expect_results(kTolerance);
  std::vector<uint16_t> rounded(problem.dk.size());
  const std::vector<float> dq = problem.dq;
  std::fill(problem.dv.begin(), problem.dv.end(), 77.0F);
  problem.args.dk = {rounded.data(), ElementType::kBf16, heads};
  problem.args.dv.data = nullptr;
  run(problem);
  EXPECT_EQ(problem.dq, dq);
  EXPECT_EQ(problem.dv, std::vector<float>(dq.size(), 77.0F));
  for (int64_t pair = 0; pair < 8; ++pair)
    for (int64_t i = 0; i < 37 * 32; ++i) {
      const int64_t at = pair / 4 * heads.outer + pair % 4 * heads.inner + i / 32 * token + i % 32;
      ASSERT_EQ(rounded[size_t(at)], to_bf16(problem.dk[size_t(pair * 37 * 32 + i)]));
    }
}

TENON_EACH_LEVEL(AttentionGradTest);

}  // namespace
}  // namespace tenon::onednn::kernels
