// SPDX-License-Identifier: Apache-2.0
// Backward operators are the adjoints of the forward ones: for y = f(x) linear in x,
// <dy, f(x)> = <grad(dy), x>, whatever dy is. Forward operators have tests of their own.

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "executable.hpp"
#include "graph_builder.hpp"
#include "rewrites/expand.hpp"

namespace tenon::onednn::test {
namespace {

using Floats = std::vector<float>;

Floats random_numbers(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  Floats numbers(static_cast<size_t>(element_count(dims)));
  for (float& x : numbers)
    x = uniform(random);
  return numbers;
}

std::vector<Floats> run(GraphBuilder& b, const std::vector<Floats>& inputs) {
  b.graph.finish();
  expand(b.graph);
  WeightStore store;
  Executable exe(b.graph, {.threads = 2}, store);
  std::vector<const void*> in;
  for (const Floats& input : inputs)
    in.push_back(input.data());
  std::vector<Floats> results;
  for (int output : b.graph.outputs)
    results.emplace_back(static_cast<size_t>(b.graph.values[output].count()), -99.0F);
  std::vector<void*> out;
  for (Floats& result : results)
    out.push_back(result.data());
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  return results;
}

double dot(const Floats& a, const Floats& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

struct ConvCase {
  Dims x, w, y;
  std::vector<Attribute> attributes;
};
const ConvCase kConvs[] = {
    {{2, 3, 9, 8}, {6, 3, 3, 3}, {2, 6, 9, 8}, {{"pads", Dims{1, 1, 1, 1}}}},
    {{2, 4, 10, 9},
     {6, 2, 3, 2},
     {2, 6, 5, 4},
     {{"group", int64_t{2}}, {"strides", Dims{2, 2}}, {"pads", Dims{1, 0, 1, 0}}}},
    {{3, 4, 17}, {4, 1, 5}, {3, 4, 9}, {{"group", int64_t{4}}, {"dilations", Dims{2}}}},
    {{1, 2, 5, 6, 7}, {3, 2, 2, 3, 1}, {1, 3, 4, 4, 7}, {}},
    // As products: steps over pixels, a window that reaches past the image on all sides, no
    // windows.
    {{2, 4, 10, 9},
     {6, 4, 3, 2},
     {2, 6, 5, 4},
     {{"strides", Dims{2, 2}}, {"pads", Dims{1, 0, 1, 0}}}},
    {{3, 4, 17},
     {6, 4, 5},
     {3, 6, 6},
     {{"strides", Dims{2}}, {"dilations", Dims{2}}, {"pads", Dims{1, 1}}}},
    {{2, 5, 3, 4}, {7, 5, 3, 3}, {2, 7, 3, 4}, {{"pads", Dims{1, 1, 1, 1}}}},
    {{2, 5, 3, 4}, {7, 5, 1, 1}, {2, 7, 3, 4}, {}},
    // oneDNN's threads write over each other's pixels here.
    {{3, 5, 14, 10}, {16, 5, 1, 1}, {3, 16, 7, 5}, {{"strides", Dims{2, 2}}}},
    {{3, 12, 14, 10}, {8, 12, 1, 1}, {3, 8, 7, 5}, {{"strides", Dims{2, 2}}}},
    {{3, 2, 41}, {8, 2, 1}, {3, 8, 21}, {{"strides", Dims{2}}}},
};

class ConvGradient : public testing::TestWithParam<size_t> {};

TEST_P(ConvGradient, IsTheAdjointOfTheConvolution) {
  const ConvCase& c = kConvs[GetParam()];
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    GraphBuilder b(seed);
    int x = b.input("x", c.x);
    int w = b.input("w", c.w);
    int dy = b.input("dy", c.y);
    b.output(b.node("Conv", {x, w}, c.y, c.attributes));
    b.output(b.node("tenon.ConvInputGrad", {dy, w, b.constant_i64(c.x)}, c.x, c.attributes));
    b.output(b.node("tenon.ConvWeightGrad", {x, dy, b.constant_i64(c.w)}, c.w, c.attributes));
    Floats xs = random_numbers(c.x, seed);
    Floats ws = random_numbers(c.w, seed + 10);
    Floats dys = random_numbers(c.y, seed + 20);

    std::vector<Floats> out = run(b, {xs, ws, dys});

    double expected = dot(out[0], dys);
    double scale = std::sqrt(dot(out[0], out[0]) * dot(dys, dys));
    EXPECT_NEAR(dot(out[1], xs), expected, 1e-5 * scale);
    EXPECT_NEAR(dot(out[2], ws), expected, 1e-5 * scale);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvGradient, testing::Range<size_t>(0, std::size(kConvs)));

TEST(PoolGradient, IsTheAdjointOfThePool) {
  const Dims x_dims = {2, 5, 9, 8};
  const Dims y_dims = {2, 5, 5, 4};
  const std::vector<Attribute> attributes = {
      {"kernel_shape", Dims{3, 2}}, {"strides", Dims{2, 2}}, {"pads", Dims{1, 0, 1, 0}}};
  GraphBuilder b(3);
  int x = b.input("x", x_dims);
  int dy = b.input("dy", y_dims);
  b.output(b.node("MaxPool", {x}, y_dims, attributes));
  b.output(b.node("AveragePool", {x}, y_dims, attributes));
  b.output(b.node("tenon.MaxPoolGrad", {dy, x}, x_dims, attributes));
  b.output(b.node("tenon.AveragePoolGrad", {dy, b.constant_i64(x_dims)}, x_dims, attributes));
  Floats xs = random_numbers(x_dims, 5);
  Floats dys = random_numbers(y_dims, 6);

  std::vector<Floats> out = run(b, {xs, dys});

  EXPECT_NEAR(dot(out[2], xs), dot(out[0], dys), 1e-4);  // a maximum is one of the inputs
  EXPECT_NEAR(dot(out[3], xs), dot(out[1], dys), 1e-4);
}

TEST(SumTo, AddsWhatBroadcastingRepeated) {
  GraphBuilder b(3);
  int x = b.input("x", {4, 3, 5});
  int to = b.constant_i64({3, 1});
  b.output(b.node("tenon.SumTo", {x, to}, {3, 1}));
  Floats xs = random_numbers({4, 3, 5}, 5);

  std::vector<Floats> out = run(b, {xs});

  for (size_t row = 0; row < 3; ++row) {
    float sum = 0;
    for (size_t i = 0; i < 20; ++i)
      sum += xs[i / 5 * 15 + row * 5 + i % 5];
    EXPECT_NEAR(out[0][row], sum, 1e-5F);
  }
}

}  // namespace
}  // namespace tenon::onednn::test
