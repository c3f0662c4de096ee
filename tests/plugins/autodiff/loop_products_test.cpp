// SPDX-License-Identifier: Apache-2.0
// Gradients of loops whose steps multiply with weights: products are kept, and sums over steps are
// one product behind the loop.
#include <gmock/gmock.h>

#include "plugins/autodiff/control_fixture.hpp"

namespace tenon::test {
namespace {

class LoopProducts : public Control {};

// h' = tanh(h w + x) and every h' u, for two samples of two numbers over three steps.
std::string network(const char* more, const char* x = "f64[3, 2, 2]", const char* step = "") {
  return std::string(R"(graph {
  input %h: f64[2, 2]
  input %x: )") +
         x + R"(
  input %w: f64[2, 2]
  input %u: f64[2, 2]
  %end: f64[2, 2], %all: f64[3, 2, 2] = Scan(%h, %x, %w, %u) {num_scan_inputs = 1, captures = 2,
    )" + more +
         R"( body = graph {
      input %s: f64[2, 2]
      input %i: f64[2, 2]
      input %w: f64[2, 2]
      input %u: f64[2, 2]
      %p: f64[2, 2] = MatMul(%s, %w) @p
      %a: f64[2, 2] = Add(%i, %p) @a
      %t: f64[2, 2] = Tanh(%a) @t
      )" +
         step +
         R"(%k: f64[2, 2] = MatMul(%t, %u) @k
      output next = %t
      output kept = %k
    }} @scan
  %e: f64[2, 2] = Exp(%end) @e
  %q: f64[3, 2, 2] = Mul(%all, %all) @q
  %se: f64[] = ReduceSum(%e) {keepdims = 0} @se
  %sq: f64[] = ReduceSum(%q) {keepdims = 0} @sq
  %l: f64[] = Add(%se, %sq) @l
  output l = %l
})";
}
const std::vector<Numbers> kInputs{{0.3, -0.2, 0.4, 0.1},
                                   {0.1, 0.5, -0.4, 0.7, -0.6, 0.2, 0.9, -0.8, 0.3, 0.6, -0.1, 0.2},
                                   {0.5, -0.3, 0.8, 0.4},
                                   {0.2, 0.7, -0.9, 0.3}};

TEST_F(LoopProducts, GradientsWalkedEitherWay) {
  for (const char* x : {"", "scan_input_directions = ints [1],"})
    for (const char* y : {"", "scan_output_directions = ints [1],"})
      expect_slopes(parse(network((std::string(x) + y).c_str())), kInputs);
}

TEST_F(LoopProducts, GradientsWhereSlicesLieAlongAnotherAxis) {
  expect_slopes(parse(network("scan_input_axes = ints [1],", "f64[2, 3, 2]")), kInputs);
}

// The product of the scanned input is the left side of a weight's gradient.
TEST_F(LoopProducts, GradientsOfWhatTheStepsRead) {
  std::string text = network("");
  text.replace(text.find("MatMul(%t, %u) @k"), 17, "MatMul(%i, %u) @k");
  expect_slopes(parse(text), kInputs);
}

TEST_F(LoopProducts, GradientsOfAProductOfAProduct) {
  std::string text = network("");
  text.replace(text.find("MatMul(%t, %u) @k"), 17, "MatMul(%p, %u) @k");
  expect_slopes(parse(text), kInputs);
}

TEST_F(LoopProducts, GradientsOfGradients) {
  OwnedGraph g = applied(parse(network("")), "autodiff.grad", {{"argnums", {2}}});
  sum_squares_of_outputs(g);
  expect_slopes(g, kInputs);
}

TEST_F(LoopProducts, AStepBackHasNoSumOfAWeightAndNoProductOfTheStepForward) {
  OwnedGraph g = applied(parse(network("")), "autodiff.grad", {{"argnums", {2, 3}}});
  int n_scans = 0;
  for (Node node : g.view().nodes()) {
    if (!node.is("Scan")) continue;
    tn_any any = node.attr("body");
    Graph body{static_cast<const tn_graph*>(any.v.p)};
    if (++n_scans == 1) continue;  // forward
    int64_t rest = node.attr_int("num_scan_inputs") + node.attr_int("captures");
    EXPECT_EQ(static_cast<int64_t>(node.n_inputs()) - rest, 1) << "the state's cotangent alone";
    int products = 0;
    for (Node inner : body.nodes())
      products += inner.is("MatMul");
    EXPECT_EQ(products, 2) << "the cotangents of both products";
  }
  EXPECT_EQ(n_scans, 2);
}

}  // namespace
}  // namespace tenon::test
