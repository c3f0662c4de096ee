// SPDX-License-Identifier: Apache-2.0
// What the passes do with a graph: inputs, outputs, composition, errors.
#include <set>

#include <gmock/gmock.h>

#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

class Grad : public AutodiffTest {
 protected:
  static std::set<std::string> operators(const OwnedGraph& graph) {
    std::set<std::string> types;
    for (Node node : graph.view().nodes())
      types.emplace(node.type());
    return types;
  }
};

constexpr const char* kSumOfSquares = R"(graph {
  input %x: f64[]
  input %y: f64[]
  %xx: f64[] = Mul(%x, %x) @square_x
  %yy: f64[] = Mul(%y, %y) @square_y
  %sum: f64[] = Add(%xx, %yy) @sum
  output sum = %sum
})";

TEST_F(Grad, SumOfSquares) {
  OwnedGraph f = parse(kSumOfSquares);
  EXPECT_THAT(results(applied(f, "autodiff.grad"), {{1.5}, {2.5}}), ElementsAre(Numbers{3.0}));
  EXPECT_THAT(results(applied(f, "autodiff.grad", {{"argnums", {0, 1}}}), {{1.5}, {2.5}}),
              ElementsAre(Numbers{3.0}, Numbers{5.0}));
  EXPECT_THAT(results(applied(f, "autodiff.grad", {{"wrt", {"y"}}}), {{1.5}, {2.5}}),
              ElementsAre(Numbers{5.0}));
  EXPECT_THAT(results(applied(f, "autodiff.value_and_grad"), {{1.5}, {2.5}}),
              ElementsAre(Numbers{8.5}, Numbers{3.0}));
}

TEST_F(Grad, NamesItsOutputsAndKeepsOthersOnlyWhenAsked) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[2]
    input %unused: f64[3]
    %e: f64[2] = Exp(%x) @e
    %s: f64[] = ReduceSum(%e) {keepdims = 0} @s
    output loss = %s
    output all = %e
  })");
  OwnedGraph g = applied(f, "autodiff.value_and_grad", {{"argnums", {0, 1}}});
  ASSERT_EQ(g.view().outputs().size(), 3u);
  EXPECT_EQ(g.view().output_name(0), "loss");
  EXPECT_EQ(g.view().output_name(1), "grad/x");
  EXPECT_EQ(g.view().output_name(2), "grad/unused");
  auto out = results(g, {{0, 1}, {1, 2, 3}});
  EXPECT_THAT(out[1], Pointwise(DoubleNear(1e-12), {1.0, std::exp(1.0)}));
  EXPECT_THAT(out[2], ElementsAre(0, 0, 0));
  g = applied(f, "autodiff.grad", {{"has_aux", true}});
  ASSERT_EQ(g.view().outputs().size(), 2u);
  EXPECT_EQ(g.view().output_name(0), "all");
}

TEST_F(Grad, GradientsOfGradients) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[]
    constant %three: f64[] = [3]
    %y: f64[] = Pow(%x, %three) @cube
    output y = %y
  })");
  OwnedGraph g = f.get() ? applied(f, "autodiff.grad") : OwnedGraph();
  EXPECT_THAT(results(g, {{2}})[0], ElementsAre(12));
  g = applied(g, "autodiff.grad");
  EXPECT_THAT(results(g, {{2}})[0], ElementsAre(12));
  EXPECT_THAT(results(applied(g, "autodiff.grad"), {{2}})[0], ElementsAre(6));
}

TEST_F(Grad, VjpAndJvpOfAMatrixProduct) {
  OwnedGraph f = parse(R"(graph {
    input %a: f64[2, 2]
    input %b: f64[2, 1]
    %y: f64[2, 1] = MatMul(%a, %b) @y
    output y = %y
  })");
  OwnedGraph v = applied(f, "autodiff.vjp", {{"argnums", {0, 1}}});
  EXPECT_EQ(v.view().input_name(2), "cotangent/y");
  EXPECT_THAT(results(v, {{1, 2, 3, 4}, {5, 6}, {1, 10}}),
              ElementsAre(Numbers{17, 39}, Numbers{5, 6, 50, 60}, Numbers{31, 42}));
  OwnedGraph j = applied(f, "autodiff.jvp", {{"argnums", {0, 1}}});
  ASSERT_EQ(j.view().inputs().size(), 4u);
  EXPECT_EQ(j.view().input_name(2), "tangent/a");
  EXPECT_EQ(j.view().output_name(1), "tangent/y");
  // da b + a db
  EXPECT_THAT(results(j, {{1, 2, 3, 4}, {5, 6}, {1, 0, 0, 1}, {1, 1}}),
              ElementsAre(Numbers{17, 39}, Numbers{8, 13}));
}

// Both have a cotangent of y; the second is called by a free name.
TEST_F(Grad, ProductsOfProducts) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[]
    constant %three: f64[] = [3]
    %y: f64[] = Pow(%x, %three) @cube
    output y = %y
  })");
  OwnedGraph twice = applied(applied(f, "autodiff.vjp"), "autodiff.vjp");
  ASSERT_EQ(twice.view().inputs().size(), 4u);
  EXPECT_EQ(twice.view().input_name(2), "cotangent/y.2");
  ASSERT_EQ(twice.view().outputs().size(), 3u);
  EXPECT_EQ(twice.view().output_name(2), "grad/x.2");
  // y = x^3, g = u 3x^2; by x: v 3x^2 + w u 6x
  EXPECT_THAT(results(twice, {{2}, {3}, {1}, {10}})[2], ElementsAre(12 + 10 * 3 * 12.0));
  OwnedGraph j = applied(applied(f, "autodiff.jvp"), "autodiff.jvp");
  EXPECT_EQ(j.view().input_name(1), "tangent/x");
  EXPECT_EQ(j.view().input_name(2), "tangent/x.2");
}

TEST_F(Grad, HessianVectorProduct) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[2]
    constant %three: f64[] = [3]
    %c: f64[2] = Pow(%x, %three) @cube
    %y: f64[] = ReduceProd(%c) {keepdims = 0} @product
    output y = %y
  })");
  OwnedGraph h = applied(applied(f, "autodiff.grad"), "autodiff.jvp");
  // f = (xy)^3, Hessian [[6xy^3, 9x^2y^2], [9x^2y^2, 6x^3y]]
  EXPECT_THAT(results(h, {{1, 2}, {1, 1}})[1], Pointwise(DoubleNear(1e-9), {48.0 + 36, 36 + 12.0}));
}

// Where dividing the product by the element would give NaN.
TEST_F(Grad, ProductsWithZeros) {
  const Numbers x{2, 0, 3, 0, 0, 3};  // one zero in the first row, two in the second
  auto slope = [&](const std::string& node) {
    return results(applied(parse("graph {\n  input %x: f64[2, 3]\n" + node + R"(
      %s: f64[] = ReduceSum(%y) {keepdims = 0} @s
      output s = %s
    })"),
                           "autodiff.grad"),
                   {x})
        .at(0);
  };
  EXPECT_THAT(slope(R"(  constant %axes: i64[1] = [1]
      %y: f64[2] = ReduceProd(%x, %axes) {keepdims = 0} @y)"),
              ElementsAre(0, 6, 0, 0, 0, 0));
  const std::string cumulated = R"(  constant %axis: i64[] = [1]
      %y: f64[2, 3] = CumProd(%x, %axis) )";
  EXPECT_THAT(slope(cumulated + "@y"), ElementsAre(1, 8, 0, 1, 0, 0));
  EXPECT_THAT(slope(cumulated + "{exclusive = 1} @y"), ElementsAre(1, 2, 0, 1, 0, 0));
  EXPECT_THAT(slope(cumulated + "{reverse = 1} @y"), ElementsAre(0, 9, 1, 0, 3, 1));
}

TEST_F(Grad, ConstantsCanBeDifferentiatedBy) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[3]
    constant %w: f64[3] = [1, 2, 3]
    %p: f64[3] = Mul(%x, %w) @p
    %y: f64[] = ReduceSum(%p) {keepdims = 0} @y
    output y = %y
  })");
  EXPECT_THAT(results(applied(f, "autodiff.grad", {{"wrt", {"w"}}}), {{4, 5, 6}})[0],
              ElementsAre(4, 5, 6));
}

TEST_F(Grad, BroadcastsAreSummed) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[2, 1]
    input %y: f64[3]
    %p: f64[2, 3] = Mul(%x, %y) @p
    %s: f64[] = ReduceSum(%p) {keepdims = 0} @s
    output s = %s
  })");
  EXPECT_THAT(results(applied(f, "autodiff.grad", {{"argnums", {0, 1}}}), {{2, 3}, {1, 2, 3}}),
              ElementsAre(Numbers{6, 6}, Numbers{5, 5, 5}));
}

TEST_F(Grad, ReluAndClipTakeNothingAtTheirCorners) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[3]
    constant %low: f64[] = [0]
    constant %high: f64[] = [6]
    %r: f64[3] = Relu(%x) @r
    %c: f64[3] = Clip(%x, %low, %high) @c
    %p: f64[3] = Add(%r, %c) @p
    %s: f64[] = ReduceSum(%p) {keepdims = 0} @s
    output s = %s
  })");
  EXPECT_THAT(results(applied(f, "autodiff.grad"), {{0, 6, 3}})[0], ElementsAre(0, 1, 2));
}

// Each node has a kink at 0, their sum has none.
TEST_F(Grad, NodesWithKinksThatMakeUpForEachOtherKeepTheirSlope) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[3]
    constant %zero: f64[] = [0]
    constant %one: f64[] = [1]
    %m: f64[3] = Max(%x, %zero) @m
    %a: f64[3] = Abs(%x) @a
    %n: f64[3] = Neg(%a) @n
    %e: f64[3] = Exp(%n) @e
    %p: f64[3] = Add(%e, %one) @p
    %l: f64[3] = Log(%p) @l
    %softplus: f64[3] = Add(%m, %l) @softplus
    %s: f64[] = ReduceSum(%softplus) {keepdims = 0} @s
    output s = %s
  })");
  EXPECT_THAT(results(applied(f, "autodiff.grad"), {{0, std::log(3), -std::log(3)}})[0],
              Pointwise(DoubleNear(1e-12), {0.5, 0.75, 0.25}));
}

TEST_F(Grad, StopGradientAndCustomGradients) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[]
    %held: f64[] = tenon:StopGradient(%x) @held
    %y: f64[] = Mul(%x, %held) @y
    output y = %y
  })");
  EXPECT_THAT(results(applied(f, "autodiff.grad"), {{3}})[0], ElementsAre(3));
  OwnedGraph custom = parse(R"(graph {
    function my:twice = graph {
      input %a: f64[]
      %b: f64[] = Add(%a, %a) @b
      output b = %b
    } vjp graph {
      input %a: f64[]
      input %g: f64[]
      constant %seven: f64[] = [7]
      %r: f64[] = Mul(%g, %seven) @r
      output r = %r
    }
    input %x: f64[]
    %y: f64[] = my:twice(%x) @call
    %z: f64[] = Mul(%y, %y) @z
    output z = %z
  })");
  EXPECT_THAT(results(applied(custom, "autodiff.grad"), {{1}})[0], ElementsAre(28));
}

// As files of exporters compute pads, by steps that shape inference does not follow.
TEST_F(Grad, SizesThatTheGraphComputesAreKnownToTheRules) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[3]
    %n: i64[1] = Shape(%x) @n
    %none: i64[1] = Sub(%n, %n) @none
    %pairs: i64[2] = Concat(%none, %n) {axis = 0} @pairs
    constant %back: i64[1] = [-1]
    constant %end: i64[1] = [-9]
    constant %axis: i64[1] = [0]
    %reversed: i64[2] = Slice(%pairs, %back, %end, %axis, %back) @reversed
    constant %ints: i64[2] = [1, 0]
    %shape: i64[2] = Mul(%reversed, %ints) @shape
    %wide: f64[*] = Pad(%x, %shape) @wide
    %square: f64[*] = Mul(%wide, %wide) @square
    %loss: f64[*] = ReduceSum(%square) {keepdims = 0} @loss
    output loss = %loss
  })");
  EXPECT_THAT(results(applied(f, "autodiff.grad"), {{1, 2, 3}}), ElementsAre(Numbers{2, 4, 6}));
}

// Reversed, every second one from the end, and one alone.
TEST_F(Grad, OfSlicesWithStepsMovesAndPads) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[2, 5]
    constant %start: i64[2] = [-1, -1]
    constant %end: i64[2] = [-9, -9]
    constant %axes: i64[2] = [0, 1]
    constant %steps: i64[2] = [-1, -2]
    constant %w: f64[2, 3] = [1, 2, 3, 4, 5, 6]
    constant %far: i64[2] = [7, 7]
    %y: f64[2, 3] = Slice(%x, %start, %end, %axes, %steps) @y
    %z: f64[1, 1] = Slice(%x, %axes, %far, %axes, %far) @z
    %m: f64[2, 3] = Mul(%y, %w) @m
    %all: f64[2, 3] = Add(%m, %z) @all
    %loss: f64[] = ReduceSum(%all) {keepdims = 0} @loss
    output loss = %loss
  })");
  OwnedGraph g = applied(f, "autodiff.grad");
  EXPECT_THAT(results(g, {Numbers(10, 1)}), ElementsAre(Numbers{6, 6, 5, 0, 4, 3, 0, 2, 0, 1}));
  EXPECT_FALSE(operators(g).contains("ScatterElements"));
}

// The first matrix has an inverse, the second one has none, and of the third one all minors are 0.
TEST_F(Grad, OfDeterminantsAreCofactorsAlsoOfSingularMatrices) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[3, 3, 3]
    %d: f64[3] = Det(%x) @d
    %loss: f64[] = ReduceSum(%d) {keepdims = 0} @loss
    output loss = %loss
  })");
  const Numbers x = {2, 0, 1, 1, 3, 2, 1, 1, 4, 1, 2, 3, 4, 5,
                     6, 7, 8, 9, 1, 2, 3, 2, 4, 6, 3, 6, 9};
  OwnedGraph g = applied(f, "autodiff.grad");
  EXPECT_THAT(results(g, {x}),
              ElementsAre(Pointwise(DoubleNear(1e-12),
                                    Numbers{10, -2, -2, 1,  7, -2, -3, -3, 6, -3, 6, -3, 6, -12,
                                            6,  -3, 6,  -3, 0, 0,  0,  0,  0, 0,  0, 0,  0})));
  Numbers tangent(27, 0);
  tangent[0] = 1;  // which the other minors of its row and column do not have
  EXPECT_THAT(results(applied(g, "autodiff.jvp"), {x, tangent})[1],
              Pointwise(DoubleNear(1e-12), Numbers{0, 0, 0, 0, 4, -1, 0, -2, 3, 0, 0, 0, 0, 0,
                                                   0, 0, 0, 0, 0, 0,  0, 0,  0, 0, 0, 0, 0}));
}

// Zeros do no harm. A second gradient is that of a Scan.
TEST_F(Grad, OfACumulativeProductIsOneNode) {
  OwnedGraph f = parse(R"(graph {
    input %x: f64[4]
    constant %axis: i64[] = [0]
    constant %w: f64[4] = [1, 10, 100, 1000]
    %y: f64[4] = CumProd(%x, %axis) @y
    %m: f64[4] = Mul(%y, %w) @m
    %loss: f64[] = ReduceSum(%m) {keepdims = 0} @loss
    output loss = %loss
  })");
  OwnedGraph g = applied(f, "autodiff.grad");
  EXPECT_FALSE(operators(g).contains("Scan"));
  EXPECT_THAT(results(g, {{2, 0, 3, 5}}), ElementsAre(Numbers{1, 2 * (10 + 300 + 15000), 0, 0}));
  EXPECT_THAT(results(applied(g, "autodiff.jvp"), {{2, 0, 3, 5}, {0, 1, 0, 0}})[1],
              ElementsAre(15310, 0, 2 * (100 + 5000), 2 * 3000));
}

TEST_F(Grad, Errors) {
  EXPECT_THAT(refused("graph {\n input %x: f64[4]\n %y: f64[4] = Exp(%x) @e\n output y = %y\n}",
                      "autodiff.grad"),
              HasSubstr("output y: expected a scalar to differentiate, got float64[4]; reduce"));
  EXPECT_THAT(refused("graph {\n input %x: i64[]\n %y: i64[] = Neg(%x) @e\n output y = %y\n}",
                      "autodiff.grad"),
              HasSubstr("input x: expected a float type to differentiate, got int64"));
  EXPECT_THAT(refused(kSumOfSquares, "autodiff.grad", {{"wrt", {"z"}}}),
              HasSubstr("expected an input or a constant (inputs: x, y), got 'z'"));
  EXPECT_THAT(refused(kSumOfSquares, "autodiff.grad", {{"argnums", 2}}),
              HasSubstr("option argnums: expected positions in -2..1, got 2"));
  EXPECT_THAT(refused(kSumOfSquares, "autodiff.grad", {{"output", "sun"}}),
              HasSubstr("option output: expected one of sum, got 'sun'"));
  EXPECT_THAT(refused(R"(graph {
    input %x: f64[]
    %y: f64[] = acme:Mystery(%x) @odd
    output y = %y
  })",
                      "autodiff.grad"),
              testing::AllOf(HasSubstr("operator acme:Mystery (node odd)"),
                             HasSubstr("no gradient: no loaded plugin brings this operator")));
}

}  // namespace
}  // namespace tenon::test
