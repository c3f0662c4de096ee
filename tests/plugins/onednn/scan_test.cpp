// SPDX-License-Identifier: Apache-2.0
// Scans as steps of onednn's plan: the body's plan is repeated, and what reads only captured values
// runs once.
#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

// A state that decays, a product with a captured weight, and slices of both kinds.
std::string recurrence(const std::string& directions) {
  return R"(graph {
  input %h: f32[2, 3]
  input %c: f32[2, 3]
  input %x: f32[5, 2, 4]
  input %z: f32[5, 2, 3]
  input %w: f32[3, 4]
  %hn: f32[2, 3], %cn: f32[2, 3], %all: f32[5, 2, 3] = Scan(%h, %c, %x, %z, %w) {
    num_scan_inputs = 2, captures = 1, )" +
         directions + R"(, body = graph {
      input %h: f32[2, 3]
      input %c: f32[2, 3]
      input %x: f32[2, 4]
      input %z: f32[2, 3]
      input %w: f32[3, 4]
      %w2: f32[3, 4] = Tanh(%w) @invariant
      %t: f32[4, 3] = Transpose(%w2) {perm = ints [1, 0]} @turn
      %p: f32[2, 3] = MatMul(%x, %t) @product
      %s: f32[2, 3] = Add(%p, %h) @add
      %a: f32[2, 3] = Tanh(%s) @tanh
      %m: f32[2, 3] = Mul(%c, %z) @mul
      %n: f32[2, 3] = Sub(%m, %a) @sub
      %y: f32[2, 3] = Identity(%a) @y
      output h = %a
      output c = %n
      output y = %y
    }} @scan
  output hn = %hn
  output cn = %cn
  output all = %all
})";
}

class Scan : public BothBackends {
 protected:
  // That the plan has the loop itself, not the host beside it.
  void expect_one_step(const std::string& text, double tolerance = 2e-5) {
    expect_same(text, tolerance);
    Outcome got = run(parse(text), {{"backend", "onednn"}});
    ASSERT_EQ(got.plan["partitions"].size(), 1u) << got.plan.dump(1);
    EXPECT_GE(got.plan["partitions"][0]["kernels"].value("tenon:loop", 0), 1) << got.plan.dump(1);
  }
};

TEST_F(Scan, RunsWithinThePlan) {
  expect_one_step(recurrence("scan_input_directions = ints [0, 0]"));
}

TEST_F(Scan, GoesBackwardsWhereItIsAskedTo) {
  expect_one_step(
      recurrence("scan_input_directions = ints [1, 0], scan_output_directions = ints [1]"));
}

TEST_F(Scan, RunsInBf16AsTheProductsAroundItDo) {
  OwnedGraph graph = parse(recurrence("scan_input_directions = ints [0, 1]"));
  Outcome expected = run(graph, {{"backend", "reference"}});
  Outcome got = run(graph, {{"backend", "onednn"}, {"precision", "bf16"}});
  ASSERT_EQ(got.error, "");
  for (size_t i = 0; i < 3; ++i)
    expect_near(got.outputs[i], expected.outputs[i], 2e-2);
}

TEST_F(Scan, OfOneStepGivesItsOnlySlice) {
  expect_one_step(R"(graph {
  input %h: i64[3]
  input %x: i64[1, 3]
  %n: i64[3], %all: i64[1, 3] = Scan(%h, %x) {num_scan_inputs = 1, body = graph {
      input %h: i64[3]
      input %x: i64[3]
      %s: i64[3] = Add(%h, %x) @add
      %y: i64[3] = Identity(%h) @y
      output h = %s
      output y = %y
    }} @scan
  output n = %n
  output all = %all
})");
}

// Its slices are all alike, and each is written; what reads it is in another iteration's memory.
TEST_F(Scan, CollectsWhatIsTheSameInEachIteration) {
  expect_one_step(R"(graph {
  input %h: f32[4]
  input %x: f32[3, 4]
  input %w: f32[4]
  %n: f32[4], %all: f32[3, 4], %more: f32[3, 4] = Scan(%h, %x, %w) {
    num_scan_inputs = 1, captures = 1, body = graph {
      input %h: f32[4]
      input %x: f32[4]
      input %w: f32[4]
      constant %axis: i64[] = [0]
      %e: f32[4] = Exp(%w) @exp
      %r: f32[4] = CumSum(%e, %axis) @sums
      %q: f32[4] = CumSum(%r, %axis) @more
      %s: f32[4] = Add(%h, %x) @add
      %t: f32[4] = Mul(%s, %q) @mul
      output h = %t
      output e = %e
      output r = %r
    }} @scan
  output n = %n
  output all = %all
  output more = %more
})");
}

TEST_F(Scan, OfAScanIsALoopInALoop) {
  expect_one_step(R"(graph {
  input %h: f32[2]
  input %x: f32[3, 4, 2]
  input %w: f32[2]
  %n: f32[2], %all: f32[3, 4, 2] = Scan(%h, %x, %w) {num_scan_inputs = 1, captures = 1,
    body = graph {
      input %h: f32[2]
      input %x: f32[4, 2]
      input %w: f32[2]
      %e: f32[2] = Sin(%w) @sin
      %g: f32[2], %ys: f32[4, 2] = Scan(%h, %x, %e) {num_scan_inputs = 1, captures = 1,
        body = graph {
          input %h: f32[2]
          input %x: f32[2]
          input %e: f32[2]
          %p: f32[2] = Mul(%h, %e) @mul
          %s: f32[2] = Add(%p, %x) @add
          %y: f32[2] = Identity(%s) @y
          output h = %s
          output y = %y
        }} @inner
      output h = %g
      output ys = %ys
    }} @outer
  output n = %n
  output all = %all
})");
}

TEST_F(Scan, AlongAnotherAxisStaysWithTheHost) {
  const std::string text = R"(graph {
  input %h: f32[2]
  input %x: f32[2, 3]
  %n: f32[2] = Scan(%h, %x) {num_scan_inputs = 1, scan_input_axes = ints [1], body = graph {
      input %h: f32[2]
      input %x: f32[2]
      %s: f32[2] = Add(%h, %x) @add
      output h = %s
    }} @scan
  output n = %n
})";
  expect_same(text);
  Outcome got = run(parse(text), {{"backend", "onednn"}});
  EXPECT_EQ(got.plan["partitions"][0]["backend"], "host");
}

TEST_F(Scan, SaysWhatIsWrongWithTheDataOfAnIteration) {
  Outcome got = run(parse(R"(graph {
  input %x: i64[3, 1]
  input %h: f32[1]
  %n: f32[1] = Scan(%h, %x) {num_scan_inputs = 1, body = graph {
      input %h: f32[1]
      input %x: i64[1]
      constant %table: f32[2] = [1, 2]
      constant %far: i64[1] = [9]
      %i: i64[1] = Add(%x, %far) @far
      %g: f32[1] = Gather(%table, %i) @gather
      %s: f32[1] = Add(%h, %g) @add
      output h = %s
    }} @scan
  output n = %n
})"),
                    {{"backend", "onednn"}});
  EXPECT_THAT(got.error, HasSubstr("node gather: indices: expected -2..1, got "));
}

}  // namespace
}  // namespace tenon::test
