// SPDX-License-Identifier: Apache-2.0
// Concats that begin with one another, as the layers of a dense block: what they give beside plain
// loops, and that each piece is written once.

#include <gtest/gtest.h>

#include "executable.hpp"
#include "graph_builder.hpp"
#include "plain_eval.hpp"
#include "rewrites/rewrites.hpp"

namespace tenon::onednn::test {
namespace {

constexpr int64_t kPixels = 6 * 5, kFirst = 16, kGrowth = 24;

struct Outcome {
  double error = 0;  // over the largest magnitude
  double concat_bytes = 0;
  std::vector<std::string> concat_kernels;
};

Outcome run(const Graph& graph, bool bf16 = false) {
  std::vector<float> x(static_cast<size_t>(graph.values[graph.inputs[0]].count()));
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  for (float& v : x)
    v = uniform(random);
  const Value& result = graph.values[graph.outputs[0]];
  std::vector<float> got(static_cast<size_t>(result.count()), -99.0F);
  WeightStore store;
  CompileOptions options{.bf16 = bf16, .threads = 2};
  Graph rewritten = graph;
  rewrite(rewritten);
  Executable executable(rewritten, options, store);
  std::shared_ptr<void> workspace = aligned_bytes(executable.workspace_bytes());
  const std::vector<const void*> in = {x.data()};
  const std::vector<void*> out = {got.data()};
  RunRequest request{.inputs = in, .outputs = out, .workspace = workspace.get()};
  EXPECT_EQ(executable.run(request), nullptr);
  Outcome outcome;
  for (const Step& step : executable.plan().steps) {
    if (step.op != "Concat") continue;
    outcome.concat_bytes += step.bytes;
    outcome.concat_kernels.push_back(step.kernel);
  }
  const auto values = plain_eval(graph, {std::vector<double>(x.begin(), x.end())});
  double most = 1e-6, worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = values[graph.outputs[0]][i];
    most = std::max(most, std::abs(want));
    worst = std::max(worst, std::abs(want - static_cast<double>(got[i])));
  }
  outcome.error = worst / most;
  return outcome;
}

int norm(GraphBuilder& b, int x) {
  const Dims dims = b.graph.values[x].dims;
  std::vector<int> inputs = {x};
  for (int i = 0; i < 3; ++i)
    inputs.push_back(b.random_constant({dims[1]}, 0.5F));
  inputs.push_back(b.constant({dims[1]}, std::vector<float>(static_cast<size_t>(dims[1]), 0.3F)));
  return b.node("BatchNormalization", inputs, dims);
}

int concat(GraphBuilder& b, const std::vector<int>& pieces, int64_t axis = 1) {
  const auto at = static_cast<size_t>(axis);
  Dims dims = b.graph.values[pieces[0]].dims;
  dims[at] = 0;
  for (int piece : pieces)
    dims[at] += b.graph.values[piece].dims[at];
  return b.node("Concat", pieces, dims, {{"axis", axis}});
}

// Each layer reads all before it: as a list of all, or as the last Concat and what is new.
Graph& dense_block(GraphBuilder& b, bool is_nested, int layers, int64_t batch = 1) {
  int x = b.stored(b.input("x", {batch, 8, 6, 5}), 0.02F, 128);
  std::vector<int> pieces = {b.stored(b.conv(x, kFirst, 3, 1), 0.03F, 120)};
  int all = pieces[0];
  for (int i = 0; i < layers; ++i) {
    const int activated = b.stored(b.relu(norm(b, all)), 0.02F, 0);
    const int made = b.stored(b.conv(activated, kGrowth, 3, 1), 0.02F, 110);
    pieces.push_back(made);
    all = b.stored(concat(b, is_nested ? std::vector<int>{all, made} : pieces), 0.03F, 120);
  }
  b.output(b.conv(b.stored(b.relu(norm(b, all)), 0.02F, 0), 8, 1, 1));
  return b.graph;
}

TEST(ConcatRoom, IsFilledPieceByPiece) {
  for (bool is_quantized : {false, true}) {
    for (bool is_nested : {false, true}) {
      for (bool bf16 : {false, true}) {
        GraphBuilder b(21, is_quantized);
        const Outcome outcome = run(dense_block(b, is_nested, 4), bf16);

        EXPECT_LT(outcome.error, is_quantized ? 0.04 : bf16 ? 0.03 : 1e-5);
        if (bf16) continue;  // small tensors stay in f32 there
        const int64_t bytes = is_quantized ? 1 : 4;
        EXPECT_EQ(outcome.concat_bytes,
                  static_cast<double>(2 * bytes * kPixels * (kFirst + 4 * kGrowth)))
            << is_quantized << is_nested;
      }
    }
  }
}

TEST(ConcatRoom, HoldsBatches) {
  for (bool is_quantized : {false, true}) {
    GraphBuilder b(25, is_quantized);
    const Outcome outcome = run(dense_block(b, false, 3, 3));

    EXPECT_LT(outcome.error, is_quantized ? 0.04 : 1e-5);
    EXPECT_EQ(outcome.concat_bytes, static_cast<double>(3 * 2 * (is_quantized ? 1 : 4) * kPixels *
                                                        (kFirst + 3 * kGrowth)))
        << is_quantized;
  }
}

// Along rows and along images, each Concat with all that the one before holds.
TEST(ConcatRoom, HoldsAlongAnyAxis) {
  for (bool is_quantized : {false, true}) {
    for (int64_t axis : {0, 2, 3}) {
      GraphBuilder b(26, is_quantized);
      const int x = b.stored(b.input("x", {2, 8, 6, 5}), 0.02F, 128);
      std::vector<int> pieces = {b.stored(b.conv(x, 8, 3, 1), 0.03F, 120)};
      int all = pieces[0];
      for (int i = 0; i < 3; ++i) {
        pieces.push_back(b.stored(b.conv(x, 8, 3, 1), 0.03F, 120));
        all = b.stored(b.relu(b.stored(concat(b, pieces, axis), 0.03F, 120)), 0.03F, 0);
      }
      b.output(b.conv(all, 8, 1, 1));

      EXPECT_LT(run(b.graph).error, is_quantized ? 0.04 : 1e-5) << axis;
    }
  }
}

// What extends the first in two ways finds the room taken, and gets memory of its own.
TEST(ConcatRoom, HoldsOneOfTwoBranches) {
  GraphBuilder b(22);
  int x = b.input("x", {1, 8, 6, 5});
  std::vector<int> pieces = {b.conv(x, 16, 3, 1), b.conv(x, 24, 1, 1)};
  const int both = b.relu(concat(b, pieces));
  const int left = b.relu(concat(b, {pieces[0], pieces[1], b.conv(both, 16, 1, 1)}));
  const int right = b.relu(concat(b, {pieces[0], pieces[1], b.conv(both, 16, 3, 1)}));
  b.output(b.add(b.conv(left, 8, 1, 1), b.conv(right, 8, 1, 1)));

  EXPECT_LT(run(b.graph).error, 1e-5);
}

// A convolution would have to copy what has gaps, so there is no room where one reads a Concat.
TEST(ConcatRoom, IsNotForWhatConvolutionsRead) {
  GraphBuilder b(23);
  int x = b.input("x", {1, 8, 6, 5});
  std::vector<int> pieces = {b.conv(x, 16, 3, 1), b.conv(x, 24, 1, 1)};
  pieces.push_back(b.conv(concat(b, pieces), 16, 3, 1));
  b.output(b.conv(concat(b, pieces), 8, 1, 1));

  const Outcome outcome = run(b.graph);

  EXPECT_LT(outcome.error, 1e-5);
  EXPECT_EQ(outcome.concat_bytes, 2.0 * 4 * kPixels * (16 + 24 + 16 + 24 + 16));
}

// Scales differ, so the second holds the first's numbers anew.
TEST(ConcatRoom, IsLeftWhereScalesChange) {
  GraphBuilder b(24, true);
  int x = b.stored(b.input("x", {1, 8, 6, 5}), 0.02F, 128);
  const int a = b.stored(b.conv(x, 16, 3, 1), 0.03F, 120);
  const int c = b.stored(b.conv(x, 24, 1, 1), 0.03F, 110);
  const int both = b.stored(concat(b, {a, c}), 0.03F, 120);
  const int d = b.stored(b.conv(b.stored(b.relu(norm(b, both)), 0.02F, 0), 16, 3, 1), 0.03F, 120);
  const int all = b.stored(concat(b, {a, c, d}), 0.05F, 100);
  b.output(b.conv(b.stored(b.relu(norm(b, all)), 0.02F, 0), 8, 1, 1));

  EXPECT_LT(run(b.graph).error, 0.04);
}

// No QuantizeLinear behind it: what reads the result finds quantized values all the same.
TEST(ConcatOfAlike, MovesQuantizedValues) {
  for (ElementType type : {ElementType::kU8, ElementType::kS8}) {
    GraphBuilder b(25, true);
    const int zero = type == ElementType::kU8 ? 120 : 0;
    int x = b.stored(b.input("x", {1, 8, 6, 5}), 0.02F, 128);
    const int left = b.stored(b.conv(x, 16, 3, 1), 0.03F, zero, type);
    const int right = b.stored(b.conv(x, 24, 1, 1), 0.03F, zero, type);
    b.output(b.conv(b.relu(concat(b, {left, right})), 8, 1, 1));
    const Outcome real = run(b.graph);
    EXPECT_LT(real.error, 0.02);
    EXPECT_EQ(real.concat_kernels, std::vector<std::string>{"tenon:concat"});
    EXPECT_EQ(real.concat_bytes, 2.0 * kPixels * 40);
  }
}

}  // namespace
}  // namespace tenon::onednn::test
