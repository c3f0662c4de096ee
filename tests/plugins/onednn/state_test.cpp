// SPDX-License-Identifier: Apache-2.0
// States in a plan: new values take the place of the old ones, but not before those were read.

#include <gtest/gtest.h>

#include "executable.hpp"
#include "graph_builder.hpp"

namespace tenon::onednn::test {
namespace {

using Floats = std::vector<float>;
const std::vector<tn_expr_node> kAdd = {
    {TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_INPUT, 1, 0, 0, 0}, {TN_EXPR_ADD, 0, 1, 0, 0}};

// A graph over a 2x2 state s and a 2x2 input x.
struct Kept : GraphBuilder {
  Kept() : GraphBuilder(1), x(input("x", {2, 2})) {
    Value value;
    value.name = "s";
    value.dims = {2, 2};
    s = graph.add_value(std::move(value));
  }
  int sum(int a, int b) { return node("Add", {a, b}, {2, 2}, {}, kAdd); }
  void becomes(int after) {
    graph.states.emplace_back(s, after);
    graph.finish();
  }

  int x;
  int s = kNone;
};

struct Outcome {
  Floats state, output;
  size_t n_steps = 0;
  int64_t arena = 0;
};

// One run with s = [1, 2; 3, 4] and x = [10, 20; 30, 40].
Outcome run(const Kept& b) {
  WeightStore store;
  Executable exe(b.graph, {.threads = 2}, store);
  Outcome outcome{{1, 2, 3, 4}, Floats(4, -99.0F), exe.plan().steps.size(), exe.workspace_bytes()};
  const Floats x = {10, 20, 30, 40};
  const void* in[] = {x.data()};
  void* out[] = {outcome.output.data()};
  void* states[] = {outcome.state.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in,
                     .outputs = {out, b.graph.outputs.size()},
                     .states = states,
                     .workspace = workspace.get()}),
            nullptr);
  return outcome;
}

TEST(State, IsReplacedWhereItLies) {
  Kept b;
  b.becomes(b.sum(b.s, b.x));

  Outcome outcome = run(b);

  EXPECT_EQ(outcome.state, (Floats{11, 22, 33, 44}));
  EXPECT_EQ(outcome.n_steps, 1U);
  EXPECT_EQ(outcome.arena, 0);
}

TEST(State, StaysUntilItsLastReader) {
  Kept b;
  int next = b.sum(b.s, b.x);
  b.output(b.node("MatMul", {b.s, b.s}, {2, 2}));
  b.becomes(next);

  Outcome outcome = run(b);

  EXPECT_EQ(outcome.output, (Floats{7, 10, 15, 22}));
  EXPECT_EQ(outcome.state, (Floats{11, 22, 33, 44}));
}

TEST(State, IsNotReplacedWhileItIsReadInAnotherOrder) {
  Kept b;
  int transposed = b.node("Transpose", {b.s}, {2, 2}, {{"perm", Dims{1, 0}}});
  b.becomes(b.sum(b.s, transposed));

  EXPECT_EQ(run(b).state, (Floats{2, 5, 5, 8}));
}

TEST(State, OldAndNewValuesAreResults) {
  Kept b;
  int next = b.sum(b.s, b.x);
  b.output(b.s);
  b.becomes(next);

  Outcome outcome = run(b);

  EXPECT_EQ(outcome.output, (Floats{1, 2, 3, 4}));
  EXPECT_EQ(outcome.state, (Floats{11, 22, 33, 44}));
}

TEST(State, MayBecomeWhatIsNoPointwiseResult) {
  Kept b;
  b.becomes(b.node("MatMul", {b.s, b.x}, {2, 2}));

  EXPECT_EQ(run(b).state, (Floats{70, 100, 150, 220}));
}

TEST(State, MayBecomeItsTranspose) {
  Kept b;
  b.becomes(b.node("Transpose", {b.s}, {2, 2}, {{"perm", Dims{1, 0}}}));

  EXPECT_EQ(run(b).state, (Floats{1, 3, 2, 4}));
}

// Of any shape, by any expression; what one of them has to wait for runs in front.
TEST(State, ManyAreReplacedByOneStep) {
  Kept b;
  std::vector<Floats> kept;
  std::vector<Floats> expected;
  for (int64_t n : {3, 70000, 1, 500}) {
    int state = b.input("s" + std::to_string(n), {n});
    b.graph.inputs.pop_back();
    int step = b.constant({}, {0.5F});
    const bool doubles = n == 500;
    int after = b.node("Add", {state, doubles ? state : step}, {n}, {}, kAdd);
    b.graph.states.emplace_back(state, after);
    kept.emplace_back(static_cast<size_t>(n), static_cast<float>(n));
    expected.emplace_back(kept.back().size(), static_cast<float>(n) + (doubles ? 500.0F : 0.5F));
  }
  b.graph.finish();
  WeightStore store;
  Executable exe(b.graph, {.threads = 2}, store);
  ASSERT_EQ(exe.plan().steps.size(), 1U);
  EXPECT_EQ(exe.plan().steps[0].name, "Add1 and 3 more");
  std::vector<void*> states;
  for (Floats& state : kept)
    states.push_back(state.data());
  const Floats x(4);
  const void* in[] = {x.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  ASSERT_EQ(exe.run({.inputs = in, .outputs = {}, .states = states, .workspace = workspace.get()}),
            nullptr);
  EXPECT_EQ(kept, expected);
}

TEST(State, TwoStatesChangePlaces) {
  Kept b;
  Value value;
  value.name = "t";
  value.dims = {2, 2};
  int t = b.graph.add_value(std::move(value));
  b.graph.states = {{b.s, t}, {t, b.s}};
  b.graph.finish();
  WeightStore store;
  Executable exe(b.graph, {.threads = 1}, store);
  Floats s = {1, 2, 3, 4}, u = {5, 6, 7, 8};
  void* states[] = {s.data(), u.data()};
  const void* in[] = {u.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  ASSERT_EQ(exe.run({.inputs = in, .outputs = {}, .states = states, .workspace = workspace.get()}),
            nullptr);

  EXPECT_EQ(s, (Floats{5, 6, 7, 8}));
  EXPECT_EQ(u, (Floats{1, 2, 3, 4}));
}

}  // namespace
}  // namespace tenon::onednn::test
