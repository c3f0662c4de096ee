// SPDX-License-Identifier: Apache-2.0
// Gradients and vmap through If, Loop and Scan: against the same function without control flow, or
// against central differences.
#include <gmock/gmock.h>

#include "plugins/autodiff/control_fixture.hpp"

namespace tenon::test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

// h' = tanh(w h + x), with every h kept, backwards in time and along axis 1.
std::string recurrence(const char* more) {
  return std::string(R"(graph {
  input %h: f64[2]
  input %x: f64[2, 3]
  input %w: f64[2, 2]
  %end: f64[2], %all: f64[2, 3] = Scan(%h, %x, %w) {num_scan_inputs = 1, captures = 1,
    scan_input_axes = ints [1], scan_output_axes = ints [-1], )") +
         more + R"( body = graph {
      input %s: f64[2]
      input %i: f64[2]
      input %c: f64[2, 2]
      %p: f64[2] = MatMul(%c, %s) @p
      %a: f64[2] = Add(%p, %i) @a
      %t: f64[2] = Tanh(%a) @t
      %k: f64[2] = Mul(%t, %i) @k
      output next = %t
      output kept = %k
    }} @scan
  %e: f64[2] = Exp(%end) @e
  %q: f64[2, 3] = Mul(%all, %all) @q
  %se: f64[] = ReduceSum(%e) {keepdims = 0} @se
  %sq: f64[] = ReduceSum(%q) {keepdims = 0} @sq
  %l: f64[] = Add(%se, %sq) @l
  output l = %l
})";
}
const std::vector<Numbers> kAt{
    {0.3, -0.2}, {0.1, 0.5, -0.4, 0.7, -0.6, 0.2}, {0.5, -0.3, 0.8, 0.4}};

TEST_F(Control, GradientsOfAScan) {
  expect_slopes(parse(recurrence("")), kAt);
  expect_slopes(parse(recurrence("scan_input_directions = ints [1],")), kAt);
  expect_slopes(parse(recurrence("scan_output_directions = ints [1],")), kAt);
}

TEST_F(Control, GradientsOfGradientsOfAScan) {
  OwnedGraph g = applied(parse(recurrence("")), "autodiff.grad");
  sum_squares_of_outputs(g);
  expect_slopes(g, kAt);
}

TEST_F(Control, JvpOfAScanIsTheGradientTimesTheTangent) {
  OwnedGraph f = parse(recurrence(""));
  std::vector<Numbers> inputs = kAt;
  Numbers tangent{0.7, -1.1};
  auto g = results(applied(f, "autodiff.grad"), kAt)[0];
  inputs.push_back(tangent);
  auto j = results(applied(f, "autodiff.jvp"), inputs);
  ASSERT_EQ(j.size(), 2u);
  EXPECT_NEAR(j[1][0], g[0] * tangent[0] + g[1] * tangent[1], 1e-12);
}

// x -> x^2 + c, `times` times; the counter is a state without a gradient.
constexpr const char* kLoop = R"(graph {
  input %x: f64[2]
  input %c: f64[2]
  constant %times: i64[] = [3]
  constant %zero: i64[] = [0]
  %n: i64[], %end: f64[2], %all: f64[?, 2] = Loop(%times, _, %zero, %x, %c) {captures = 1, body = graph {
      input %i: i64[]
      input %go: bool[]
      input %n: i64[]
      input %s: f64[2]
      input %c: f64[2]
      constant %one: i64[] = [1]
      %m: i64[] = Add(%n, %one) @m
      %f: f64[] = Cast(%i) {to = dtype f64} @f
      %q: f64[2] = Mul(%s, %s) @q
      %a: f64[2] = Add(%q, %c) @a
      %k: f64[2] = Mul(%a, %f) @k
      %again: bool[] = Identity(%go) @again
      output again = %again
      output m = %m
      output next = %a
      output kept = %k
    }} @loop
  %se: f64[] = ReduceSum(%end) {keepdims = 0} @se
  %sq: f64[] = ReduceSum(%all) {keepdims = 0} @sq
  %l: f64[] = Add(%se, %sq) @l
  output l = %l
})";

TEST_F(Control, GradientsOfALoop) {
  expect_slopes(parse(kLoop), {{0.6, -0.4}, {0.2, 0.3}});
}

constexpr const char* kIf = R"(graph {
  input %x: f64[2]
  input %y: f64[2]
  constant %zero: f64[] = [0]
  %s: f64[] = ReduceSum(%x) {keepdims = 0} @s
  %c: bool[] = Greater(%s, %zero) @c
  %r: f64[2] = If(%c, %x, %y) {captures = 2,
    then_branch = graph {
      input %x: f64[2]
      input %y: f64[2]
      %p: f64[2] = Mul(%x, %y) @p
      output r = %p
    },
    else_branch = graph {
      input %x: f64[2]
      input %y: f64[2]
      %e: f64[2] = Exp(%y) @e
      output r = %e
    }} @if
  %l: f64[] = ReduceSum(%r) {keepdims = 0} @l
  output l = %l
})";

TEST_F(Control, GradientsOfAnIfAreOfTheBranchTaken) {
  OwnedGraph g = applied(parse(kIf), "autodiff.grad", {{"argnums", {0, 1}}});
  EXPECT_THAT(results(g, {{1, 2}, {3, 4}}), ElementsAre(Numbers{3, 4}, Numbers{1, 2}));
  auto other = results(g, {{-1, -2}, {0, 1}});
  EXPECT_THAT(other[0], ElementsAre(0, 0));
  EXPECT_THAT(other[1], Pointwise(DoubleNear(1e-12), {1.0, std::exp(1.0)}));
}

// Both branches make values that their gradients read; LayerNormalization becomes its parts.
constexpr const char* kDeepIf = R"(graph {
  input %x: f64[2, 3]
  input %y: f64[3]
  constant %zero: f64[] = [0]
  %s: f64[] = ReduceSum(%x) {keepdims = 0} @s
  %c: bool[] = Greater(%s, %zero) @c
  %r: f64[2, 3], %q: f64[2, 3] = If(%c, %x, %y) {captures = 2,
    then_branch = graph {
      input %x: f64[2, 3]
      input %y: f64[3]
      %n: f64[2, 3] = LayerNormalization(%x, %y) @n
      %t: f64[2, 3] = Tanh(%n) @t
      %m: f64[2, 3] = Mul(%t, %x) @m
      output r = %m
      output q = %t
    },
    else_branch = graph {
      input %x: f64[2, 3]
      input %y: f64[3]
      %e: f64[3] = Exp(%y) @e
      %a: f64[2, 3] = Mul(%x, %e) @a
      %g: f64[2, 3] = Sigmoid(%a) @g
      output r = %g
      output q = %a
    }} @if
  %l: f64[2, 3] = Mul(%r, %q) @l
  %z: f64[] = ReduceSum(%l) {keepdims = 0} @z
  output z = %z
})";

TEST_F(Control, GradientsOfAnIfReadWhatItsBranchHasMade) {
  Numbers x{0.3, -0.2, 0.9, 0.4, -0.7, 0.1}, below;
  for (double one : x)
    below.push_back(-one);
  for (const Numbers& at : {x, below})
    expect_slopes(parse(kDeepIf), {at, {0.5, -0.3, 0.8}});
  // What the forward pass has computed is not recomputed in the backward pass.
  OwnedGraph g = applied(parse(kDeepIf), "autodiff.grad", {{"argnums", {0, 1}}});
  std::vector<Node> ifs;
  for (Node node : g.view().nodes())
    if (node.is("If")) ifs.push_back(node);
  ASSERT_EQ(ifs.size(), 2u);
  EXPECT_GT(ifs[0].n_outputs(), 2u);
  for (const char* name : {"then_branch", "else_branch"}) {
    tn_any body = ifs[1].attr(name);
    for (Node node : Graph{static_cast<const tn_graph*>(body.v.p)}.nodes())
      for (const char* again : {"Tanh", "Exp", "Sigmoid", "Sqrt"})
        EXPECT_FALSE(node.is(again)) << name << " computes " << again << " again";
  }
}

TEST_F(Control, GradientsOfGradientsOfAnIf) {
  OwnedGraph g = applied(parse(kDeepIf), "autodiff.grad", {{"argnums", {0, 1}}});
  sum_squares_of_outputs(g);
  Numbers x{0.3, -0.2, 0.9, 0.4, -0.7, 0.1};
  expect_slopes(g, {x, {0.5, -0.3, 0.8}});
}

// `f` batched with these axes, against a loop over examples.
class ControlVmap : public Control {
 protected:
  void expect_examples(const OwnedGraph& f,
                       const std::vector<Numbers>& at,
                       const std::vector<bool>& batched) {
    constexpr size_t kExamples = 3;
    std::string axes;
    std::vector<Numbers> all;
    auto of_example = [](Numbers numbers, size_t k) {
      for (double& x : numbers)
        x *= 1 - 0.4 * static_cast<double>(k);
      return numbers;
    };
    for (size_t i = 0; i < at.size(); ++i) {
      axes += cat(i ? ", " : "", batched[i] ? "0" : "none");
      all.emplace_back();
      for (size_t k = 0; k < (batched[i] ? kExamples : 1); ++k)
        for (double x : of_example(at[i], k))
          all.back().push_back(x);
    }
    OwnedGraph v = applied(f, "autodiff.vmap", {{"axis_size", kExamples}, {"in_axes", axes}});
    std::vector<Numbers> wide = results(v, all);
    for (size_t k = 0; k < kExamples; ++k) {
      std::vector<Numbers> one = at;
      for (size_t i = 0; i < at.size(); ++i)
        if (batched[i]) one[i] = of_example(at[i], k);
      std::vector<Numbers> expected = results(f, one);
      ASSERT_EQ(wide.size(), expected.size());
      for (size_t o = 0; o < wide.size(); ++o)
        for (size_t e = 0; e < expected[o].size(); ++e)
          EXPECT_NEAR(wide[o].at(k * expected[o].size() + e), expected[o][e], 1e-12)
              << "output " << o << " example " << k;
    }
  }
};

TEST_F(ControlVmap, ScanWithAnyInputBatched) {
  OwnedGraph f = parse(recurrence("scan_input_directions = ints [1],"));
  expect_examples(f, kAt, {true, true, true});
  expect_examples(f, kAt, {true, false, false});
  expect_examples(f, kAt, {false, true, false});
  expect_examples(f, kAt, {false, false, true});
}

TEST_F(ControlVmap, PerExampleGradientsOfAScan) {
  OwnedGraph f = parse(recurrence(""));
  OwnedGraph g = applied(f, "autodiff.grad", {{"argnums", {0, 1, 2}}});
  expect_examples(g, kAt, {true, true, false});
}

TEST_F(ControlVmap, LoopAndIf) {
  std::vector<Numbers> at{{0.6, -0.4}, {0.2, 0.3}};
  for (const char* text : {kLoop, kIf}) {
    OwnedGraph f = parse(text);
    expect_examples(f, at, {true, true});
    expect_examples(f, at, {false, true});
    expect_examples(applied(f, "autodiff.grad", {{"argnums", {0, 1}}}), at, {true, true});
  }
}

// Newton's square root of a until it is near enough, and how many steps that took.
constexpr const char* kWhile = R"(graph {
  input %a: f64[]
  input %times: i64[]
  constant %start: f64[] = [1]
  constant %zero: f64[] = [0]
  constant %yes: bool[] = x'01'
  %root: f64[], %n: f64[] = Loop(%times, %yes, %start, %zero, %a) {captures = 1, body = graph {
      input %i: i64[]
      input %go: bool[]
      input %x: f64[]
      input %n: f64[]
      input %a: f64[]
      constant %one: f64[] = [1]
      constant %two: f64[] = [2]
      constant %near: f64[] = [1e-9]
      %q: f64[] = Div(%a, %x) @q
      %s: f64[] = Add(%x, %q) @s
      %y: f64[] = Div(%s, %two) @y
      %m: f64[] = Add(%n, %one) @m
      %d: f64[] = Sub(%y, %x) @d
      %e: f64[] = Abs(%d) @e
      %again: bool[] = Greater(%e, %near) @again
      output again = %again
      output y = %y
      output m = %m
    }} @loop
  output root = %root
  output n = %n
})";

// Both the condition and the trip count may differ: examples that have stopped keep their states.
TEST_F(ControlVmap, EachExampleOfALoopStopsAtItsOwnTime) {
  OwnedGraph f = parse(kWhile);
  const Numbers a{4, 1, 1e6, 2e-3};
  OwnedGraph all = applied(f, "autodiff.vmap", {{"axis_size", 4}, {"in_axes", "0, none"}});
  auto wide = results(all, {a, {100}});
  for (size_t k = 0; k < a.size(); ++k) {
    auto one = results(f, {{a[k]}, {100}});
    EXPECT_EQ(wide[0][k], one[0][0]);
    EXPECT_EQ(wide[1][k], one[1][0]) << "steps of example " << k;
  }
  EXPECT_EQ(wide[1][1], 1);
  EXPECT_GT(wide[1][2], wide[1][0]);
  OwnedGraph counts = applied(f, "autodiff.vmap", {{"axis_size", 4}, {"in_axes", "none, 0"}});
  EXPECT_THAT(results(counts, {{9}, {0, 2, 3, 100}})[1],
              ElementsAre(0, 2, 3, results(f, {{9}, {100}})[1][0]));
  // Of all examples at once by a vmap over the vmap.
  OwnedGraph twice = applied(all, "autodiff.vmap", {{"axis_size", 2}, {"in_axes", "none, 0"}});
  EXPECT_THAT(results(twice, {a, {1, 3}})[1], ElementsAre(1, 1, 1, 1, 3, 1, 3, 3));
  OwnedGraph back = applied(all, "autodiff.vjp", {{"outputs", {"root"}}});
  auto slopes = results(back, {a, {100}, {1, 1, 1, 1}})[2];
  for (size_t k = 0; k < a.size(); ++k)
    EXPECT_NEAR(slopes[k] * 2 * std::sqrt(a[k]), 1, 1e-6);
}

TEST_F(ControlVmap, GradientsOfWhatIsBatched) {
  OwnedGraph f = parse(recurrence(""));
  OwnedGraph v = applied(f, "autodiff.vmap", {{"axis_size", 2}, {"in_axes", "0, none, none"}});
  OwnedGraph back = applied(v, "autodiff.vjp");
  Numbers h{0.3, -0.2, 0.5, 0.1};
  auto both = results(back, {h, kAt[1], kAt[2], {1, 10}})[1];
  OwnedGraph g = applied(f, "autodiff.grad");
  for (size_t k = 0; k < 2; ++k) {
    auto one = results(g, {{h[2 * k], h[2 * k + 1]}, kAt[1], kAt[2]})[0];
    for (size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(both[2 * k + i], one[i] * (k ? 10 : 1), 1e-12);
  }
}

}  // namespace
}  // namespace tenon::test
