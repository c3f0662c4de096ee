// SPDX-License-Identifier: Apache-2.0
// The compiler's results against plain loops, on graphs that make it fuse, quantize and re-lay.

#include <algorithm>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "cpu.hpp"
#include "executable.hpp"
#include "graph_builder.hpp"
#include "kernels/depthwise.h"
#include "plain_eval.hpp"

namespace tenon::onednn::test {
namespace {

std::vector<float> random_input(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> x(static_cast<size_t>(count));
  for (float& v : x)
    v = uniform(random);
  return x;
}

struct Outcome {
  std::vector<std::vector<float>> got;
  std::vector<std::vector<double>> expected;
  std::vector<std::string> kernels;
  int n_reorders = 0;
  tn_arena_size arena;
};

Outcome run(const Graph& graph, bool bf16 = false) {
  Outcome outcome;
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<double>> plain_inputs;
  std::vector<const void*> pointers;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    inputs.push_back(
        random_input(graph.values[graph.inputs[i]].count(), 7 + static_cast<uint32_t>(i)));
    plain_inputs.emplace_back(inputs.back().begin(), inputs.back().end());
  }
  for (const auto& input : inputs)
    pointers.push_back(input.data());
  std::vector<void*> targets;
  for (int output : graph.outputs)
    outcome.got.emplace_back(static_cast<size_t>(graph.values[output].count()), -99.0F);
  for (auto& output : outcome.got)
    targets.push_back(output.data());
  WeightStore store;
  CompileOptions options{.bf16 = bf16, .threads = 2};
  Executable exe(graph, options, store);
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  RunRequest request{.inputs = pointers, .outputs = targets, .workspace = workspace.get()};
  const Step* where = nullptr;
  const char* error = exe.run(request, &where);
  EXPECT_EQ(error, nullptr) << where->name;
  for (const Step& step : exe.plan().steps)
    outcome.kernels.push_back(step.kernel);
  outcome.n_reorders = exe.plan().n_reorders;
  outcome.arena = exe.arena();
  auto values = plain_eval(graph, plain_inputs);
  for (int output : graph.outputs)
    outcome.expected.push_back(values[output]);
  return outcome;
}

// Largest difference relative to the largest magnitude.
double error_of(const Outcome& outcome, size_t i = 0) {
  double most = 1e-6;
  double worst = 0;
  for (size_t k = 0; k < outcome.got[i].size(); ++k) {
    most = std::max(most, std::abs(outcome.expected[i][k]));
    worst = std::max(worst, std::abs(outcome.expected[i][k] - outcome.got[i][k]));
  }
  return worst / most;
}

// Whether a kernel has this in its name.
bool has_kernel(const Outcome& outcome, std::string_view name) {
  return std::any_of(outcome.kernels.begin(), outcome.kernels.end(),
                     [&](const std::string& kernel) { return kernel.find(name) != kernel.npos; });
}

constexpr double kF32 = 1e-5;   // rounding of sums of a few thousand terms
constexpr double kBf16 = 2e-2;  // 8 bits of mantissa, a few layers

void build_block(GraphBuilder& b, bool stores_summand = false) {
  int x = b.stored(b.input("x", {2, 16, 9, 7}), 0.008F, 128);
  int y = b.stored(b.relu(b.conv(x, 32, 1, 1)), 0.02F, 0);
  y = b.stored(b.relu(b.conv(y, 32, 3, 1)), 0.03F, 0);
  y = b.conv(y, 16, 1, 1);
  if (stores_summand) y = b.stored(y, 0.03F, 120);
  y = b.stored(b.relu(b.add(y, x)), 0.03F, 0);
  y = b.stored(b.max_pool(y, 3, 2, 1), 0.03F, 0);
  y = b.stored(b.global_average(y), 0.02F, 0);
  b.output(b.linear(b.reshape(y, {2, 16}), 10));
}

TEST(Engine, RunsAResidualBlockLikePlainLoops) {
  GraphBuilder b(3);
  build_block(b);

  Outcome outcome = run(b.graph);

  EXPECT_LT(error_of(outcome), kF32);
  EXPECT_EQ(outcome.kernels.size(), 7U);  // reorder, 3 convs, 2 pools, product: all else is fused
}

TEST(Engine, RunsAResidualBlockInBf16) {
  GraphBuilder b(3);
  build_block(b);

  EXPECT_LT(error_of(run(b.graph, true)), kBf16);
}

TEST(Engine, KeepsAQuantizedBlockInIntegers) {
  GraphBuilder b(3, true);
  build_block(b);
  Outcome outcome = run(b.graph);
  EXPECT_LT(error_of(outcome), 1e-5);
  EXPECT_EQ(outcome.kernels.size(), 8U);  // as in f32, and QuantizeLinear at the entry
}

TEST(Engine, RoundsASummandThatIsStoredByItself) {
  GraphBuilder b(3, true);
  build_block(b, true);
  Outcome outcome = run(b.graph);
  EXPECT_LT(error_of(outcome), 1e-5);
  EXPECT_EQ(outcome.kernels.size(), 9U);  // the sum is a step of quantized values
}

// A convolution, so that what follows is channels-last, and one of a window per channel.
void build_depthwise(
    GraphBuilder& b, int64_t channels, int64_t stride, int64_t kernel, ElementType type) {
  int32_t zero = type == ElementType::kS8 ? -20 : 108;
  int x = b.stored(b.input("x", {2, 16, 9, 7}), 0.008F, 128);
  int y = b.stored(b.conv(x, channels, 1, 1), 0.03F, zero, type);
  y = b.stored(b.relu(b.conv(y, channels, kernel, stride, channels)), 0.03F, zero, type);
  b.output(b.stored(b.conv(y, 8, 1, 1), 0.05F, 120));
}

TEST(Engine, RunsDepthwiseConvolutionsInIntegers) {
  const bool is_fast = kernels::has_fast_depthwise(kernels::make_context(best_level()));
  for (int64_t channels : {40, 58}) {  // of 40, a second block of 32 would be nearly empty
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t kernel : {3, 5, 7}) {
        for (ElementType type : {ElementType::kU8, ElementType::kS8}) {
          SCOPED_TRACE(testing::Message()
                       << channels << " channels, stride " << stride << ", kernel " << kernel);
          GraphBuilder b(5, true);
          build_depthwise(b, channels, stride, kernel, type);

          Outcome outcome = run(b.graph);

          EXPECT_LT(error_of(outcome), 0.02);  // two roundings, each the plain loops' or one off
          bool is_own =
              std::count(outcome.kernels.begin(), outcome.kernels.end(), "tenon:depthwise") == 1;
          EXPECT_EQ(is_own, is_fast && channels == 58 && kernel < 7 && stride < 3);
        }
      }
    }
  }
}

class Shapes : public testing::TestWithParam<int> {};

TEST_P(Shapes, ConvolutionsOfAllKindsAgree) {
  int i = GetParam();
  GraphBuilder b(static_cast<uint32_t>(i), i % 2 == 1);
  int64_t groups = i % 3 == 0 ? 1 : (i % 3 == 1 ? 4 : 16);
  int64_t kernel = 1 + 2 * (i % 3);
  Dims dims = i % 4 == 3 ? Dims{2, 16, 23} : Dims{1, 16, 8 + i, 11};
  int x = b.stored(b.input("x", dims), 0.008F, 128);
  b.output(b.conv(x, i % 3 == 2 ? 16 : 24, kernel, 1 + i % 2, groups));

  EXPECT_LT(error_of(run(b.graph)), kF32);
}
INSTANTIATE_TEST_SUITE_P(Random, Shapes, testing::Range(0, 12));

// One head-split attention as exporters write it.
void build_attention(GraphBuilder& b, int64_t batch, int64_t seq) {
  const int64_t heads = 4;
  const int64_t width = 64;
  int x = b.input("x", {batch, seq, width});
  auto split = [&](int v, Dims perm, const Dims& dims) {
    int r = b.reshape(v, {batch, seq, heads, width / heads});
    return b.node("Transpose", {r}, dims, {{"perm", std::move(perm)}});
  };
  int bias = b.random_constant({width}, 0.1F);
  int q = split(b.add(b.linear(x, width), bias), {0, 2, 1, 3}, {batch, heads, seq, width / heads});
  int k = split(b.linear(x, width), {0, 2, 3, 1}, {batch, heads, width / heads, seq});
  int v = split(b.linear(x, width), {0, 2, 1, 3}, {batch, heads, seq, width / heads});
  int scores = b.node("MatMul", {q, k}, {batch, heads, seq, seq});
  int mask = b.input("mask", {batch, 1, 1, seq});
  int p = b.node("Softmax", {b.add(scores, mask)}, {batch, heads, seq, seq});
  int context = b.node("MatMul", {p, v}, {batch, heads, seq, width / heads});
  int merged = b.node("Transpose", {context}, {batch, seq, heads, width / heads},
                      {{"perm", Dims{0, 2, 1, 3}}});
  int y = b.add(b.linear(b.reshape(merged, {batch, seq, width}), width), x);
  int gamma = b.random_constant({width}, 1.0F);
  int beta = b.random_constant({width}, 1.0F);
  b.output(b.node("LayerNormalization", {y, gamma, beta}, {batch, seq, width},
                  {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}));
}

TEST(Engine, FoldsTheTransposesOfAttentionIntoStrides) {
  GraphBuilder b(5);
  build_attention(b, 2, 19);

  Outcome outcome = run(b.graph);

  EXPECT_LT(error_of(outcome), kF32 * 10);
  EXPECT_EQ(outcome.n_reorders, 0);
  EXPECT_FALSE(has_kernel(outcome, "tenon:pointwise"));
}

TEST(Engine, RunsAttentionInBf16) {
  GraphBuilder b(5);
  build_attention(b, 1, 32);

  EXPECT_LT(error_of(run(b.graph, true)), 2 * kBf16);
}

TEST(Engine, GivesTheSameBytesFromFourThreadsAtOnce) {
  GraphBuilder b(9, true);
  build_block(b);
  WeightStore store;
  CompileOptions options{.threads = 2};
  Executable exe(b.graph, options, store);
  std::vector<float> x = random_input(2 * 16 * 9 * 7, 1);
  auto run_once = [&](std::vector<float>& y) {
    std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
    const void* in[] = {x.data()};
    void* out[] = {y.data()};
    for (int i = 0; i < 20; ++i) {
      RunRequest request{.inputs = in, .outputs = out, .workspace = workspace.get()};
      ASSERT_EQ(exe.run(request), nullptr);
    }
  };
  std::vector<float> expected(20);
  run_once(expected);

  std::vector<std::vector<float>> got(4, std::vector<float>(20));
  std::vector<std::thread> threads;
  for (auto& y : got)
    threads.emplace_back([&] { run_once(y); });
  for (std::thread& thread : threads)
    thread.join();

  for (const auto& y : got)
    EXPECT_EQ(y, expected);
}

TEST(Engine, ConcatenatesChannelsLast) {
  GraphBuilder b(11);
  int x = b.input("x", {1, 8, 6, 5});
  int left = b.conv(x, 16, 3, 1);
  int right = b.conv(x, 24, 1, 1);
  int both = b.node("Concat", {left, right}, {1, 40, 6, 5}, {{"axis", int64_t{1}}});
  b.output(b.conv(both, 8, 1, 1));

  EXPECT_LT(error_of(run(b.graph)), kF32);
}

// Quantized values of one scale move, others get new ones: rows of both in one step.
TEST(Engine, ConcatenatesQuantizedValuesOfDifferentScales) {
  GraphBuilder b(11, true);
  int x = b.stored(b.input("x", {1, 8, 6, 5}), 0.02F, 128);
  int left = b.stored(b.conv(x, 16, 3, 1), 0.02F, 120);
  int right = b.stored(b.conv(x, 24, 1, 1), 0.05F, 128, ElementType::kU8);
  int both = b.node("Concat", {left, right}, {1, 40, 6, 5}, {{"axis", int64_t{1}}});
  b.output(b.conv(b.stored(both, 0.02F, 120), 8, 1, 1));

  Outcome outcome = run(b.graph);

  EXPECT_LT(error_of(outcome), 0.02);
  EXPECT_TRUE(has_kernel(outcome, "tenon:concat"));
}

TEST(Engine, PoolsQuantizedValuesInTheirOwnKernel) {
  for (ElementType type : {ElementType::kU8, ElementType::kS8}) {
    GraphBuilder b(12, true);
    const int zero = type == ElementType::kU8 ? 120 : -8;
    int x = b.stored(b.input("x", {2, 8, 9, 7}), 0.02F, 128);
    int y = b.stored(b.conv(x, 70, 3, 1), 0.02F, zero, type);
    y = b.stored(b.max_pool(y, 3, 2, 1), 0.02F, zero, type);
    b.output(b.conv(y, 8, 1, 1));

    Outcome outcome = run(b.graph);

    EXPECT_LT(error_of(outcome), 0.02);
    EXPECT_TRUE(has_kernel(outcome, "tenon:max_pool"));
  }
}

TEST(Engine, FoldsBatchNormalizationIntoTheWeights) {
  GraphBuilder b(13);
  int x = b.input("x", {1, 8, 6, 5});
  std::vector<int> inputs = {b.conv(x, 12, 3, 1)};
  for (int i = 0; i < 3; ++i)
    inputs.push_back(b.random_constant({12}, 0.5F));
  inputs.push_back(b.constant({12}, std::vector<float>(12, 0.3F)));
  b.output(b.relu(b.node("BatchNormalization", inputs, {1, 12, 6, 5})));

  Outcome outcome = run(b.graph);

  EXPECT_LT(error_of(outcome), kF32);
  EXPECT_FALSE(has_kernel(outcome, "bnorm"));
}

TEST(Engine, NormalizesAndActivatesInOneStep) {
  for (bool is_read_twice : {false, true}) {
    GraphBuilder b(14);
    std::vector<int> inputs = {b.input("x", {1, 12, 6, 5})};
    for (int i = 0; i < 3; ++i)
      inputs.push_back(b.random_constant({12}, 0.5F));
    inputs.push_back(b.constant({12}, std::vector<float>(12, 0.3F)));
    int normal = b.node("BatchNormalization", inputs, {1, 12, 6, 5});
    b.output(b.relu(normal));
    if (is_read_twice) b.output(normal);

    Outcome outcome = run(b.graph);

    EXPECT_LT(error_of(outcome), kF32);
    EXPECT_EQ(has_kernel(outcome, "tenon:pointwise"), is_read_twice);
  }
}

TEST(Engine, FindsFastKernelsWhereAnAxisIsOne) {
  GraphBuilder b(17);
  int x = b.input("x", {2, 16, 40, 1});
  int w = b.random_constant({32, 16, 9, 1}, 0.1F);
  b.output(b.node("Conv", {x, w}, {2, 32, 40, 1}, {{"pads", Dims{4, 0, 4, 0}}}));

  Outcome outcome = run(b.graph);

  EXPECT_LT(error_of(outcome), kF32);
  EXPECT_FALSE(has_kernel(outcome, "ref"));
}

// oneDNN has a fast kernel for this column, and none for it as a row.
TEST(Engine, LeavesALongFilterAsItIs) {
  GraphBuilder b(21);
  int x = b.input("x", {1, 1, 1024, 1});
  int w = b.random_constant({32, 1, 512, 1}, 0.05F);
  b.output(b.node("Conv", {x, w}, {1, 32, 256, 1},
                  {{"pads", Dims{254, 0, 254, 0}}, {"strides", Dims{4, 1}}}));

  Outcome outcome = run(b.graph);

  EXPECT_LT(error_of(outcome), kF32);
  EXPECT_FALSE(has_kernel(outcome, "ref"));
}

// Operands behind the convolution lie as its result does: one per channel, `other`, one of all.
void build_column(GraphBuilder& b, int64_t channels, int64_t groups, const Dims& other) {
  Dims dims = {2, 32, 20, 1};
  int x = b.input("x", {2, channels, 41, 1});
  int w = b.random_constant({32, channels / groups, 5, 1}, 0.1F);
  int y = b.node("Conv", {x, w}, dims,
                 {{"pads", Dims{1, 0, 2, 0}}, {"strides", Dims{2, 1}}, {"group", groups}});
  y = b.add(y, b.random_constant({32, 1, 1}, 0.1F));
  y = b.mul(y, b.input("other", other));
  b.output(b.relu(b.add(y, b.input("all", dims))));
}

TEST(Engine, RunsAColumnAsARow) {
  for (const Dims& other : {Dims{1, 1, 20, 1}, {1, 32, 1, 1}, {1}, {2, 32, 20, 1}}) {
    for (auto [channels, groups] : {std::pair{16, 1}, {16, 4}, {32, 32}, {2, 1}}) {
      GraphBuilder b(18);
      build_column(b, channels, groups, other);

      EXPECT_LT(error_of(run(b.graph)), kF32) << channels << " channels, " << groups << " groups";
      EXPECT_LT(error_of(run(b.graph, true)), kBf16);
    }
  }
}

TEST(Engine, AColumnAbsorbsWhatStandsBehindIt) {
  GraphBuilder b(18);
  build_column(b, 16, 1, {1, 32, 1, 1});

  EXPECT_FALSE(has_kernel(run(b.graph), "tenon:pointwise"));
}

TEST(Engine, RunsAColumnInIntegers) {
  GraphBuilder b(19, true);
  int x = b.stored(b.input("x", {1, 16, 30, 1}), 0.008F, 128);
  int w = b.weights({24, 16, 5, 1}, 0, 0.1F);
  b.output(b.node("Conv", {x, w}, {1, 24, 26, 1}));

  EXPECT_LT(error_of(run(b.graph)), kF32);
}

}  // namespace
}  // namespace tenon::onednn::test
