// SPDX-License-Identifier: Apache-2.0
// Convolutions and products in bf16, convolutions and residuals in int8, by plain loops in f64:
// which ones AMX tiles and the depthwise kernel take, and what follows them.

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "cpu_has.hpp"
#include "executable.hpp"
#include "graph_builder.hpp"
#include "plain_eval.hpp"

namespace tenon::onednn::test {
namespace {

struct Made {
  std::vector<std::string> kernels;
  double error = 0;    // relative to the largest magnitude
  int n_in_place = 0;  // steps on tiles that write over an operand of their epilogue
};

bool is_in_place(const Step& step) {
  constexpr size_t kResult = 1, kFirstOperand = 6;
  if (!std::string(step.kernel).starts_with("tenon:amx")) return false;
  return std::any_of(
      step.places.begin() + kFirstOperand, step.places.end(),
      [&](const Place& operand) { return operand.buffer == step.places[kResult].buffer; });
}

Made run_graph(const Graph& graph, bool bf16) {
  const auto count = static_cast<size_t>(graph.values[graph.inputs[0]].count());
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(count);
  std::generate(x.begin(), x.end(), [&] { return uniform(random); });
  const int output = graph.outputs[0];
  std::vector<float> got(static_cast<size_t>(graph.values[output].count()), -99.0F);
  WeightStore store;
  Executable exe(graph, {.bf16 = bf16, .threads = 2}, store);
  const std::vector<const void*> in = {x.data()};
  const std::vector<void*> out = {got.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  Made made;
  for (const Step& step : exe.plan().steps) {
    made.kernels.emplace_back(step.kernel);
    made.n_in_place += is_in_place(step) ? 1 : 0;
  }
  const auto values = plain_eval(graph, {{x.begin(), x.end()}});
  const std::vector<double>& want = values[static_cast<size_t>(output)];
  double most = 1e-6;
  for (size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::abs(want[i]));
    made.error = std::max(made.error, std::abs(got[i] - want[i]));
  }
  made.error /= most;
  return made;
}

Made run_in_bf16(const Graph& graph) {
  return run_graph(graph, true);
}

struct Case {
  const char* name;
  int64_t kernel, stride, channels;
  bool has_residual;
  bool is_on_tiles;
};

class Bf16Conv : public testing::TestWithParam<Case> {};

TEST_P(Bf16Conv, AgreesWithPlainLoops) {
  const Case& c = GetParam();
  GraphBuilder b(11);
  const int x = b.relu(b.conv(b.input("x", {2, 8, 21, 19}), c.channels, 1, 1));
  int y = b.conv(x, c.channels, c.kernel, c.stride);
  if (c.has_residual) y = b.add(y, x);
  b.output(b.relu(y));
  b.graph.finish();

  const Made made = run_in_bf16(b.graph);

  EXPECT_LT(made.error, 2e-2);
  const bool is_on_tiles =
      std::count(made.kernels.begin(), made.kernels.end(), "tenon:amx_bf16") > 0;
  EXPECT_EQ(is_on_tiles, c.is_on_tiles && tenon::test::has_tiles());
  EXPECT_EQ(std::count(made.kernels.begin(), made.kernels.end(), "tenon:pointwise"), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Forms,
    Bf16Conv,
    testing::Values(Case{"Window", 3, 1, 64, false, true},
                    Case{"WindowThenResidual", 3, 1, 64, true, true},
                    Case{"StridedWindow", 3, 2, 96, false, true},
                    Case{"LargeWindow", 5, 1, 64, true, false},
                    Case{"FewChannels", 3, 1, 32, false, false},
                    Case{"ColumnsOfNoWholePanel", 3, 1, 80, false, false},
                    Case{"Pixel", 1, 1, 64, true, false},
                    Case{"StridedPixel", 1, 2, 64, false, false},
                    Case{"PixelOfManyChannels", 1, 1, 256, true, true},
                    Case{"StridedPixelOfManyChannels", 1, 2, 256, false, true}),
    [](const testing::TestParamInfo<Case>& each) { return std::string(each.param.name); });

TEST(Bf16Planes, AreReadWhereTheyLie) {
  struct Form {
    int64_t kernel, stride, filters;
    bool is_on_tiles;
  };
  for (const Form& form :
       {Form{3, 2, 32, true}, Form{4, 4, 96, true}, Form{2, 1, 32, true}, Form{3, 1, 32, false},
        Form{7, 2, 64, true}, Form{7, 1, 64, false}, Form{3, 2, 40, false}}) {
    GraphBuilder b(14);
    const int x = b.input("x", {2, 3, 131, 117});
    b.output(b.relu(b.conv(x, form.filters, form.kernel, form.stride)));
    b.graph.finish();

    const Made made = run_in_bf16(b.graph);

    EXPECT_LT(made.error, 2e-2);
    const bool is_on_tiles = form.is_on_tiles && tenon::test::has_tiles();
    EXPECT_EQ(made.kernels.front() == "tenon:amx_bf16", is_on_tiles)
        << form.kernel << " x " << form.kernel << ", " << form.filters << " filters";
  }
}

TEST(Bf16Depthwise, TakesActivationsAlong) {
  for (const int64_t stride : {1, 2}) {
    GraphBuilder b(13);
    const int x = b.relu(b.conv(b.input("x", {2, 8, 29, 23}), 48, 1, 1));
    b.output(b.conv(b.relu(b.conv(x, 48, 3, stride, 48)), 32, 1, 1));
    b.graph.finish();

    const Made made = run_in_bf16(b.graph);

    EXPECT_LT(made.error, 2e-2);
    const auto taken =
        std::count(made.kernels.begin(), made.kernels.end(), "tenon:float_depthwise");
    EXPECT_EQ(taken, tenon::test::has_avx512() ? 1 : 0) << "stride " << stride;
  }
}

TEST(Bf16Product, OfShortRowsIsOnTiles) {
  for (const int64_t depth : {64, 1536, 1600}) {
    GraphBuilder b(12);
    b.output(b.linear(b.linear(b.input("x", {40, 32}), depth), 48));
    b.graph.finish();

    const Made made = run_in_bf16(b.graph);

    EXPECT_LT(made.error, 2e-2);
    const auto on_tiles = std::count(made.kernels.begin(), made.kernels.end(), "tenon:amx_bf16");
    const int expected = depth > 1536 ? 1 : 2;  // the first one always has short rows
    EXPECT_EQ(on_tiles, tenon::test::has_tiles() ? expected : 0) << "depth " << depth;
  }
}

// A convolution of `kernel` and a residual that something else may read behind it.
Made run_residual(int64_t kernel, bool is_read_later) {
  GraphBuilder b(15, true);
  const int x = b.stored(b.input("x", {2, 16, 13, 11}), 0.008F, 128);
  const int a = b.stored(b.relu(b.conv(x, 64, 1, 1)), 0.02F, 0);
  const int y = b.stored(b.relu(b.conv(a, 64, 1, 1)), 0.02F, 0);
  const int z = b.stored(b.relu(b.add(b.conv(y, 64, kernel, 1), a)), 0.03F, 0);
  b.output(b.conv(is_read_later ? b.add(z, a) : z, 32, 1, 1));
  b.graph.finish();
  return run_graph(b.graph, false);
}

TEST(Int8Depthwise, IsExactOverThreeSpatialAxes) {
  GraphBuilder b(6, true);
  const int x = b.stored(b.input("x", {1, 8, 4, 5, 6}), 0.005F, 128);
  b.output(b.conv(x, 8, 3, 1, 8));

  EXPECT_LT(run_graph(b.graph, false).error, 1e-5);
}

TEST(Int8Residual, IsOverwrittenWhereNothingElseReadsIt) {
  const int expected = tenon::test::has_tiles() ? 1 : 0;
  EXPECT_LT(run_residual(1, false).error, 2e-2);
  EXPECT_EQ(run_residual(1, false).n_in_place, expected);
  EXPECT_LT(run_residual(1, true).error, 2e-2);
  EXPECT_EQ(run_residual(1, true).n_in_place, 0);
}

// The kernel writes over rows behind a line before it has their sums.
TEST(Int8Residual, OfAWindowIsNotOverwritten) {
  const Made made = run_residual(3, false);
  EXPECT_LT(made.error, 2e-2);
  EXPECT_EQ(made.n_in_place, 0);
}

std::vector<std::vector<float>> outputs_of(const Graph& graph,
                                           bool bf16,
                                           std::vector<std::string> without) {
  WeightStore store;
  Executable exe(graph, {.bf16 = bf16, .threads = 2, .without = std::move(without)}, store);
  std::vector<float> x(static_cast<size_t>(graph.values[graph.inputs[0]].count()));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 29) * 0.05F - 0.7F;
  std::vector<std::vector<float>> results;
  std::vector<void*> out;
  for (int output : graph.outputs)
    results.emplace_back(static_cast<size_t>(graph.values[output].count()), -99.0F);
  for (std::vector<float>& result : results)
    out.push_back(result.data());
  const std::vector<const void*> in = {x.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  return results;
}

// The same bytes, read tap by tap and as a matrix: each has a packed form of its own.
TEST(WeightsOnTiles, OfAConvolutionAndOfAProductStayApart) {
  GraphBuilder b(16);
  std::vector<float> weights(64 * 64 * 9);
  std::mt19937 random(6);
  for (float& weight : weights)
    weight = static_cast<float>(random() % 200) * 0.0005F - 0.05F;
  const int x = b.input("x", {1, 64, 72, 64});
  const int w = b.constant({64, 64, 3, 3}, weights);
  const std::vector<int64_t> pads = {1, 1, 1, 1}, kernel = {3, 3};
  b.output(b.node("Conv", {x, w}, {1, 64, 72, 64}, {{"pads", pads}, {"kernel_shape", kernel}}));
  b.output(b.node("Gemm", {b.reshape(x, {512, 576}), b.reshape(w, {64, 576})}, {512, 64},
                  {{"transB", int64_t{1}}}));
  b.graph.finish();
  for (const bool bf16 : {false, true}) {
    const auto got = outputs_of(b.graph, bf16, {"winograd"});
    const auto want = outputs_of(b.graph, bf16, {"winograd", "bf16x6", "amx", "amx windows"});
    for (size_t i = 0; i < got.size(); ++i)
      for (size_t at = 0; at < got[i].size(); ++at)
        ASSERT_NEAR(got[i][at], want[i][at], 0.05F) << "output " << i << " at " << at;
  }
}

}  // namespace
}  // namespace tenon::onednn::test
