// SPDX-License-Identifier: Apache-2.0
// Recurrent operators in bf16 beside themselves in f32, whose results breadth_test compares with
// the reference: with and without states to begin with, all directions, odd sizes.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpu.hpp"
#include "executable.hpp"
#include "graph_builder.hpp"

namespace tenon::onednn::test {
namespace {

struct Case {
  const char* op;
  int64_t gates;
  int64_t steps, batch, width, hidden, directions;
  bool has_state;
};
constexpr Case kCases[] = {
    {"LSTM", 4, 20, 1, 32, 256, 1, false}, {"LSTM", 4, 7, 3, 5, 33, 2, true},
    {"LSTM", 4, 5, 17, 64, 64, 2, false},  {"LSTM", 4, 1, 1, 1, 1, 1, false},
    {"GRU", 3, 9, 4, 31, 256, 1, false},   {"GRU", 3, 9, 4, 31, 256, 2, true},
    {"GRU", 3, 5, 2, 8, 48, 1, false},     {"RNN", 1, 6, 2, 40, 256, 1, false},
};

void PrintTo(const Case& c, std::ostream* os) {
  *os << c.op << " " << c.steps << " x " << c.batch << " x " << c.width << " -> " << c.hidden;
}

Graph graph_of(const Case& c, GraphBuilder& b) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(c.hidden));
  const Dims state = {c.directions, c.batch, c.hidden};
  std::vector<int> inputs = {b.input("x", {c.steps, c.batch, c.width}),
                             b.random_constant({c.directions, c.gates * c.hidden, c.width}, scale),
                             b.random_constant({c.directions, c.gates * c.hidden, c.hidden}, scale),
                             b.random_constant({c.directions, 2 * c.gates * c.hidden}, scale)};
  if (c.has_state) {
    inputs.push_back(kNone);
    inputs.push_back(b.random_constant(state, 0.5F));
  }
  const std::string direction = c.directions == 2 ? "bidirectional" : "forward";
  b.output(b.node(c.op, std::move(inputs), {c.steps, c.directions, c.batch, c.hidden},
                  {{"hidden_size", c.hidden}, {"direction", direction}}));
  b.graph.finish();
  return b.graph;
}

std::vector<float> run(const Graph& graph, bool in_bf16, int threads) {
  WeightStore store;
  Executable exe(graph, {.bf16 = in_bf16, .threads = threads}, store);
  std::vector<float> x(static_cast<size_t>(graph.values[graph.inputs[0]].count()));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 23) * 0.1F - 1.1F;
  std::vector<float> y(static_cast<size_t>(graph.values[graph.outputs[0]].count()), -99.0F);
  const std::vector<const void*> in = {x.data()};
  const std::vector<void*> out = {y.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  return y;
}

class Recurrent : public testing::TestWithParam<Case> {};

// A state is rounded at each step; what it forgets it forgets with its error.
TEST_P(Recurrent, InBf16IsCloseToF32) {
  if (!computes_in_bf16()) GTEST_SKIP() << why_not_bf16();
  GraphBuilder b(3);
  const Graph graph = graph_of(GetParam(), b);
  const std::vector<float> want = run(graph, false, 2);
  for (const int threads : {1, 2}) {
    const std::vector<float> got = run(graph, true, threads);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 0.03F) << "at " << i << ", " << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Cells, Recurrent, testing::ValuesIn(kCases));

}  // namespace
}  // namespace tenon::onednn::test
