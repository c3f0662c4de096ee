// SPDX-License-Identifier: Apache-2.0
// Gradients of QuantizeLinear and DequantizeLinear.
#include <gmock/gmock.h>

#include "plugins/autodiff/autodiff_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;

// sum(w * dequantized(x)); 0 to 255 dequantize to -1 to 24.5.
constexpr const char* kPair = R"(graph {
  input %x: f32[6]
  input %s: f32[]
  constant %zero: u8[] = [10]
  constant %w: f32[6] = [1, 2, 3, 4, 5, 6]
  %q: u8[6] = QuantizeLinear(%x, %s, %zero) @q
  %r: f32[6] = DequantizeLinear(%q, %s, %zero) @r
  %p: f32[6] = Mul(%r, %w) @p
  %loss: f32[] = ReduceSum(%p) {keepdims = 0} @loss
  output loss = %loss
}
)";
const Numbers kX{-1.2, -1, 0.234, 3, 24.5, 24.6};

class StraightThrough : public AutodiffTest {};

TEST_F(StraightThrough, IsTheIdentityInsideTheRangeAndZeroOutside) {
  OwnedGraph g = applied(parse(kPair), "autodiff.grad");

  EXPECT_THAT(results(g, {kX, {0.1}}).at(0), ElementsAre(0, 2, 3, 4, 5, 0));
}

TEST_F(StraightThrough, AScaleLearnsAsLearnedStepSizesDo) {
  OwnedGraph g = applied(parse(kPair), "autodiff.grad", {{"wrt", {"s"}}});

  double expected = 0;  // Esser et al. 2020, equation 3
  for (size_t i = 0; i < kX.size(); ++i) {
    double ratio = kX[i] / 0.1, code = std::nearbyint(ratio);
    double slope = code < -10 ? -10 : code > 245 ? 245 : code - ratio;
    expected += static_cast<double>(i + 1) * slope;
  }
  EXPECT_NEAR(results(g, {kX, {0.1}}).at(0).at(0), expected, 1e-2);
}

TEST_F(StraightThrough, EachChannelHasItsOwnRange) {
  OwnedGraph g = applied(parse(R"(graph {
  input %x: f32[2,3]
  input %s: f32[2]
  constant %zero: i8[2] = [0, 0]
  %q: i8[2,3] = QuantizeLinear(%x, %s, %zero) {axis = 0} @q
  %r: f32[2,3] = DequantizeLinear(%q, %s, %zero) {axis = 0} @r
  %square: f32[2,3] = Mul(%r, %r) @square
  %loss: f32[] = ReduceSum(%square) {keepdims = 0} @loss
  output loss = %loss
}
)"),
                         "autodiff.grad", {{"wrt", {"x", "s"}}});

  auto gradients = results(g, {{1, -1.5, 2, 1, -1.5, 2}, {0.01, 1}});

  // Up to 1.27 and 127; 2 r where it passes.
  EXPECT_THAT(gradients.at(0),
              testing::Pointwise(testing::FloatNear(1e-5F), std::vector<float>{2, 0, 0, 2, -4, 4}));
  // Outside: the end of the range; inside: code less ratio. 2 r each.
  EXPECT_NEAR(gradients.at(1).at(0), 2 * 1.28 * 128 + 2 * 1.27 * 127, 1e-2);
  EXPECT_NEAR(gradients.at(1).at(1), -4 * (-2 + 1.5), 1e-5);
}

// The last block of three columns has one.
TEST_F(StraightThrough, EachBlockHasItsOwnRange) {
  OwnedGraph g = applied(parse(R"(graph {
  input %x: f32[1,3]
  input %s: f32[1,2]
  constant %zero: i8[1,2] = [0, 0]
  %q: i8[1,3] = QuantizeLinear(%x, %s, %zero) {axis = 1, block_size = 2} @q
  %r: f32[1,3] = DequantizeLinear(%q, %s, %zero) {axis = 1, block_size = 2} @r
  constant %w: f32[1,3] = [1, 2, 3]
  %p: f32[1,3] = Mul(%r, %w) @p
  %loss: f32[] = ReduceSum(%p) {keepdims = 0} @loss
  output loss = %loss
}
)"),
                         "autodiff.grad", {{"wrt", {"x", "s"}}});

  auto gradients = results(g, {{3.25, -200, 0.75}, {1, 0.5}});

  EXPECT_THAT(gradients.at(0), ElementsAre(1, 0, 3));
  // Inside: rounded less ratio; below the range: its end.
  EXPECT_NEAR(gradients.at(1).at(0), (3 - 3.25) + 2 * -128, 1e-4);
  EXPECT_NEAR(gradients.at(1).at(1), 3 * (2 - 1.5), 1e-5);
}

}  // namespace
}  // namespace tenon::test
