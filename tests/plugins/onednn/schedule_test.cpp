// SPDX-License-Identifier: Apache-2.0
// What is kept and for how long: reductions run early, cheap results are recomputed rather than
// kept, and an optimizer's update of one tensor is one pass over it.

#include <gtest/gtest.h>

#include "executable.hpp"
#include "graph_builder.hpp"
#include "rewrites/early_reductions.hpp"
#include "rewrites/recompute.hpp"

namespace tenon::onednn::test {
namespace {

const std::vector<tn_expr_node> kTanh = {{TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_TANH, 0, 0, 0, 0}};
const std::vector<tn_expr_node> kProduct = {
    {TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_INPUT, 1, 0, 0, 0}, {TN_EXPR_MUL, 0, 1, 0, 0}};

// layers of x = Tanh(x W), and the gradients of their weights and of the first x.
struct DeepNet : GraphBuilder {
  static constexpr int64_t kRows = 256, kWidth = 512;

  explicit DeepNet(int layers, bool tanh_is_cheap) : GraphBuilder(1) {
    std::vector<int> h, a, w;
    a.push_back(input("x", {kRows, kWidth}));
    for (int i = 0; i < layers; ++i) {
      w.push_back(random_constant({kWidth, kWidth}, 0.05F));
      h.push_back(node("MatMul", {a.back(), w.back()}, {kRows, kWidth}));
      a.push_back(node("Tanh", {h.back()}, {kRows, kWidth}, {}, kTanh));
      graph.nodes.back().is_cheap = tanh_is_cheap;
    }
    int d = a.back();
    for (int i = layers; i-- > 0;) {
      d = node("Mul", {d, h[i]}, {kRows, kWidth}, {}, kProduct);
      int transposed = node("Transpose", {a[i]}, {kWidth, kRows}, {{"perm", Dims{1, 0}}});
      output(node("MatMul", {transposed, d}, {kWidth, kWidth}));
      d = node("MatMul", {d, w[i]}, {kRows, kWidth});
    }
    output(d);
    graph.finish();
  }
};

struct Outcome {
  std::vector<std::vector<float>> got;
  int64_t arena_bytes = 0;
};

Outcome run(const Graph& graph) {
  WeightStore store;
  Executable exe(graph, {.threads = 1}, store);
  std::vector<float> x(static_cast<size_t>(graph.values[graph.inputs[0]].count()));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 37) / 37.0F - 0.5F;
  std::vector<const void*> in = {x.data()};
  Outcome outcome{{}, exe.workspace_bytes()};
  std::vector<void*> out;
  for (int output : graph.outputs)
    outcome.got.emplace_back(static_cast<size_t>(graph.values[output].count()), -99.0F);
  for (std::vector<float>& each : outcome.got)
    out.push_back(each.data());
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  return outcome;
}

TEST(Recompute, TakesLessMemoryAndGivesTheSameBits) {
  DeepNet net(6, true);
  Outcome kept = run(net.graph);
  recompute(net.graph);
  Outcome again = run(net.graph);
  EXPECT_EQ(kept.got, again.got);
  EXPECT_LT(again.arena_bytes, kept.arena_bytes * 15 / 16);
}

TEST(Recompute, LeavesWhatIsNotCheap) {
  DeepNet net(6, false);
  size_t before = net.graph.nodes.size();
  recompute(net.graph);
  EXPECT_EQ(net.graph.nodes.size(), before);
}

// The first layer's argument is not kept, so its result must be.
TEST(Recompute, LeavesWhatWouldKeepSomethingElse) {
  GraphBuilder b(1);
  int x = b.input("x", {256, 512});
  int w = b.random_constant({512, 512}, 0.05F);
  int a = b.node("Tanh", {b.node("MatMul", {x, w}, {256, 512})}, {256, 512}, {}, kTanh);
  b.graph.nodes.back().is_cheap = true;
  int wide = b.node("MatMul", {a, b.random_constant({512, 4096}, 0.05F)}, {256, 4096});
  int back = b.node("MatMul", {wide, b.random_constant({4096, 512}, 0.05F)}, {256, 512});
  b.output(b.node("Mul", {a, back}, {256, 512}, {}, kProduct));
  b.graph.finish();
  size_t before = b.graph.nodes.size();
  recompute(b.graph);
  EXPECT_EQ(b.graph.nodes.size(), before);
}

TEST(EarlyReductions, RunWhereTheirOperandIsMade) {
  GraphBuilder b(1);
  int x = b.input("x", {8, 8});
  int w = b.random_constant({8, 8}, 1);
  int first = b.node("MatMul", {x, w}, {8, 8});
  int second = b.node("MatMul", {first, w}, {8, 8});
  b.output(b.node("ReduceSum", {first, b.constant_i64({0})}, {1, 8}, {{"keepdims", int64_t{1}}}));
  b.output(second);
  b.graph.finish();
  Outcome before = run(b.graph);
  reduce_early(b.graph);
  EXPECT_EQ(b.graph.nodes[1].op, "ReduceSum");
  EXPECT_EQ(b.graph.nodes[2].op, "MatMul");
  EXPECT_EQ(run(b.graph).got, before.got);
}

// m' = 0.9 m + 0.1 g, v' = 0.99 v + 0.01 g g, p' = p - m' / sqrt(v'): each is read and written
// once.
TEST(PointwiseGroup, TakesBothSidesOfASum) {
  GraphBuilder b(1);
  auto scaled = [&](int value, float factor) {
    return b.node("Mul", {value, b.constant({}, {factor})}, {64, 64}, {}, kProduct);
  };
  auto joined = [&](const char* op, int left, int right, uint32_t code) {
    std::vector<tn_expr_node> expr = kProduct;
    expr.back().op = code;
    return b.node(op, {left, right}, {64, 64}, {}, expr);
  };
  int g = b.input("g", {64, 64});
  std::vector<int> state;
  for (const char* name : {"m", "v", "p"}) {
    state.push_back(b.input(name, {64, 64}));
    b.graph.inputs.pop_back();
  }
  int m = joined("Add", scaled(g, 0.1F), scaled(state[0], 0.9F), TN_EXPR_ADD);
  int square = joined("Mul", g, g, TN_EXPR_MUL);
  int v = joined("Add", scaled(square, 0.01F), scaled(state[1], 0.99F), TN_EXPR_ADD);
  int root =
      b.node("Sqrt", {v}, {64, 64}, {}, {{TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_SQRT, 0, 0, 0, 0}});
  int p = joined("Sub", state[2], joined("Div", m, root, TN_EXPR_DIV), TN_EXPR_SUB);
  b.graph.states = {{state[0], m}, {state[1], v}, {state[2], p}};
  b.graph.finish();
  WeightStore store;
  Executable exe(b.graph, {.threads = 1}, store);
  ASSERT_EQ(exe.plan().steps.size(), 1U);
  EXPECT_EQ(exe.plan().steps[0].bytes, 7.0 * 64 * 64 * 4);
}

}  // namespace
}  // namespace tenon::onednn::test
