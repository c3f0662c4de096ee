// SPDX-License-Identifier: Apache-2.0
// Attention in f32 against loops in f64: head sizes, lengths, masks, layouts, result types,
// threads.

#include "kernels/attention.h"

#include "attention_problem.h"
#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

class AttentionTest : public EachLevel {};

using Problem = AttentionProblem<AttentionArgs, float>;

template <class T = float>
std::vector<T> run(const Context& context, Problem& problem, ElementType type = ElementType::kF32) {
  return problem.run<T>(type, [&](const AttentionArgs& call) {
    EXPECT_TRUE(takes_attention(call));
    attention(context, call);
  });
}

// Of a result of at most 2; sums of up to 300 keys.
constexpr double kTolerance = 4e-6;

TEST_P(AttentionTest, AgreesWithF64) {
  for (const AttentionShape& shape : kAttentionShapes) {
    Problem problem(shape);
    expect_near(run(context_, problem), problem.want(), kTolerance);
  }
}

TEST_P(AttentionTest, AddsMasksThatBroadcast) {
  for (const AttentionShape& shape : kAttentionShapes) {
    for (bool is_of_rows : {false, true}) {
      Problem problem(shape);
      problem.add_mask(is_of_rows);
      expect_near(run(context_, problem), problem.want(), kTolerance);
    }
  }
}

TEST_P(AttentionTest, GivesNanWhereTheFormulaDoes) {
  constexpr int64_t kKeys = 20;
  constexpr int64_t kWidth = 32;
  for (float special : {-INFINITY, INFINITY, NAN}) {
    Problem problem({1, 1, kKeys, kKeys, 32, kWidth});
    std::vector<float> mask(kKeys * kKeys, 0.0F);
    if (special < 0) std::fill_n(&mask[3 * kKeys], kKeys, special);
    mask[3 * kKeys + kKeys - 1] = special;
    problem.args.mask = mask.data();
    problem.args.mask_strides = {0, 0, kKeys, 1};
    const auto y = run(context_, problem);
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(std::isnan(y[i]), i / kWidth == 3) << special << " at " << i;
  }
}

// Heads of [tokens, 3, heads, depth], as one product makes q, k and v; operands that lie column by
// column; nothing is read behind the last element.
TEST_P(AttentionTest, ReadsOperandsWhereTheyLie) {
  const AttentionShape shape{2, 4, 37, 37, 32, 32};
  Problem problem(shape);
  const int64_t token = 3 * shape.inner * shape.depth;
  const auto joined = uniform(static_cast<uint64_t>(shape.outer * shape.rows * token), -2, 2, 6);
  const Guarded memory(joined.size() * sizeof(float));
  std::memcpy(memory.data(), joined.data(), joined.size() * sizeof(float));
  const AttentionStrides strides{shape.rows * token, shape.depth, token, 1};
  problem.args.q = reinterpret_cast<const float*>(memory.data());
  problem.args.k = problem.args.q + shape.inner * shape.depth;
  problem.args.v = problem.args.k + shape.inner * shape.depth;
  problem.args.q_strides = problem.args.k_strides = problem.args.v_strides = strides;
  expect_near(run(context_, problem), problem.want(), kTolerance);
  const AttentionStrides columns{shape.inner * shape.keys * shape.depth, shape.keys * shape.depth,
                                 1, shape.keys};
  problem.args.q = problem.q.data();
  problem.args.k = problem.k.data();
  problem.args.v = problem.v.data();
  problem.args.q_strides = problem.args.k_strides = problem.args.v_strides = columns;
  expect_near(run(context_, problem), problem.want(), kTolerance);
}

TEST_P(AttentionTest, RoundsToTheTypeOfItsResult) {
  Problem problem({1, 2, 40, 50, 32, 48});
  const std::vector<double> want = problem.want();
  problem.args.dst.quant = {0.01F, 120};
  const auto bytes = run<uint8_t>(context_, problem, ElementType::kU8);
  const auto words = run<uint16_t>(context_, problem, ElementType::kBf16);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(bytes[i], std::clamp(want[i] / 0.01 + 120, 0.0, 255.0), 0.501) << "at " << i;
    ASSERT_NEAR(from_bf16(words[i]), want[i], 0.004) << "at " << i;
  }
}

// However the work is cut, the bits are the same.
TEST_P(AttentionTest, DoesNotDependOnThreads) {
  Problem problem({1, 3, 150, 70, 16, 40});
  const auto whole = run(context_, problem);
  Parallel one_by_one{[](void*, uint64_t n, uint64_t, Parallel::Body body, void* arg) {
                        for (uint64_t i = n; i-- > 0;)
                          body(arg, i, i + 1);
                      },
                      nullptr};
  Context context = context_;
  context.parallel = one_by_one;
  EXPECT_EQ(run(context, problem), whole);
}

TEST(Attention, RefusesWhatNoCacheHolds) {
  AttentionSizes sizes;
  sizes.rows = sizes.keys = 4096;
  sizes.depth = sizes.width = 64;
  EXPECT_FALSE(takes_attention(sizes));
  sizes.keys = 512;
  EXPECT_TRUE(takes_attention(sizes));
  sizes.keys = 0;
  EXPECT_FALSE(takes_attention(sizes));
}

TENON_EACH_LEVEL(AttentionTest);

}  // namespace
}  // namespace tenon::onednn::kernels
