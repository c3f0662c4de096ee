// SPDX-License-Identifier: Apache-2.0
// Operators of our own kernels against the reference, with parameters that only a run knows.

#include <algorithm>

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Case {
  const char* name;
  const char* body;  // declarations and nodes
};

class Breadth : public BothBackends, public testing::WithParamInterface<Case> {};

TEST_P(Breadth, AgreesWithTheReference) {
  expect_same(std::string("graph {\n") + GetParam().body + "\n}");
}

constexpr Case kCases[] = {
    {"IntegersWrap", R"(input %x: i8[3, 4]
  constant %c: i8[4] = [100, -100, 127, -128]
  %s: i8[3, 4] = Add(%x, %c) @n1
  %y: i8[3, 4] = Mul(%s, %s) @n2
  output y = %y)"},
    {"WideIntegersKeepTheirDigits", R"(input %x: i64[2, 3]
  constant %c: i64[3] = [9007199254740993, 1, -9007199254740993]
  %s: i64[2, 3] = Add(%x, %c) @n3
  %e: bool[2, 3] = Greater(%s, %c) @n4
  output s = %s
  output e = %e)"},
    {"UnsignedShifts", R"(input %x: u16[5]
  constant %c: u16[5] = [0, 1, 7, 15, 16]
  %l: u16[5] = BitShift(%x, %c) {direction = "LEFT"} @n5
  %y: u16[5] = BitShift(%l, %c) {direction = "RIGHT"} @n6
  output y = %y)"},
    {"DoublesBroadcast", R"(input %x: f64[4, 1, 3]
  input %w: f64[2, 1]
  %s: f64[4, 2, 3] = Sub(%x, %w) @n7
  %y: f64[4, 2, 3] = Exp(%s) @n8
  output y = %y)"},
    {"CastsCutTowardsZero", R"(input %x: f32[40]
  %i: i32[40] = Cast(%x) {to = dtype i32} @n9
  %b: f32[40] = Cast(%i) {to = dtype f32} @n10
  %h: f16[40] = Cast(%x) {to = dtype f16} @n11
  %r: f32[40] = Cast(%h) {to = dtype f32} @n12
  %d: f32[40] = Sub(%b, %x) @n13
  %e: f32[40] = Sub(%r, %x) @n14
  output d = %d
  output e = %e)"},
    {"GatherOfCodesThatAreTransposed", R"(input %x: f32[2, 3, 4]
  constant %s: f32[] = [0.03]
  constant %z: u8[] = [120]
  constant %i: i64[] = [1]
  %c: u8[2, 3, 4] = QuantizeLinear(%x, %s, %z) @g1
  %d: f32[2, 3, 4] = DequantizeLinear(%c, %s, %z) @g2
  %t: f32[3, 2, 4] = Transpose(%d) {perm = ints [1, 0, 2]} @g3
  %g: f32[2, 4] = Gather(%t, %i) {axis = 0} @g4
  %y: f32[2, 4] = Neg(%g) @g5
  output y = %y)"},
    {"CodesAgainBehindATranspose", R"(input %x: f32[6, 40]
  constant %s: f32[] = [0.03]
  constant %z: u8[] = [120]
  %c: u8[6, 40] = QuantizeLinear(%x, %s, %z) @h1
  %d: f32[6, 40] = DequantizeLinear(%c, %s, %z) @h2
  %t: f32[40, 6] = Transpose(%d) {perm = ints [1, 0]} @h3
  %e: u8[40, 6] = QuantizeLinear(%t, %s, %z) @h4
  output quantized = %e)"},
    {"NegativeStepsOfASlice", R"(input %x: f32[4, 5, 6]
  constant %s: i64[2] = [-1, 4]
  constant %e: i64[2] = [-9, 0]
  constant %a: i64[2] = [0, 2]
  constant %t: i64[2] = [-1, -2]
  %y: f32[4, 5, 2] = Slice(%x, %s, %e, %a, %t) @n15
  output y = %y)"},
    {"PadsByReflection", R"(input %x: i32[3, 5]
  constant %p: i64[4] = [2, 4, 1, 3]
  %y: i32[6, 12] = Pad(%x, %p) {mode = "reflect"} @n16
  %z: i32[6, 12] = Pad(%x, %p) {mode = "wrap"} @n17
  output y = %y
  output z = %z)"},
    {"TilesHalves", R"(input %x: f16[2, 3]
  constant %r: i64[2] = [3, 2]
  %y: f16[6, 6] = Tile(%x, %r) @n18
  output y = %y)"},
    {"BestOnesOfMiddleAxes", R"(input %x: i32[3, 7, 5]
  constant %k: i64[1] = [4]
  %v: i32[3, 4, 5], %i: i64[3, 4, 5] = TopK(%x, %k) {axis = 1, largest = 0} @n19
  %a: i64[3, 1, 5] = ArgMax(%x) {axis = 1, select_last_index = 1} @n20
  %b: i64[3, 7] = ArgMin(%x) {axis = -1, keepdims = 0} @n21
  output v = %v
  output i = %i
  output a = %a
  output b = %b)"},
    {"SumsThatRun", R"(input %x: f64[3, 4, 5]
  constant %a: i32[] = [-2]
  %y: f64[3, 4, 5] = CumSum(%x, %a) {exclusive = 1, reverse = 1} @n22
  output y = %y)"},
    {"ReductionsOfIntegers", R"(input %x: i32[4, 3, 5]
  constant %a: i64[2] = [0, 2]
  %s: i32[3] = ReduceSum(%x, %a) {keepdims = 0} @n23
  %m: i32[1, 3, 1] = ReduceMax(%x, %a) @n24
  %q: i32[1, 3, 1] = ReduceSumSquare(%x, %a) @n25
  output s = %s
  output m = %m
  output q = %q)"},
    {"LogarithmOfSums", R"(input %x: f32[4, 3, 5]
  constant %a: i64[1] = [1]
  %y: f32[4, 1, 5] = ReduceLogSumExp(%x, %a) @n26
  output y = %y)"},
    {"TuplesGatherRuns", R"(input %x: f32[2, 3, 4, 5]
  constant %i: i64[2, 2, 1] = [1, -1, 0, 2]
  %y: f32[2, 2, 4, 5] = GatherND(%x, %i) {batch_dims = 1} @n27
  output y = %y)"},
    {"UpdatesJoin", R"(input %x: f32[3, 4]
  input %u: f32[2, 4]
  constant %i: i64[2, 4] = [0, 1, -1, 2, 0, 1, 1, 2]
  %y: f32[3, 4] = ScatterElements(%x, %i, %u) {reduction = "max"} @n28
  output y = %y)"},
    {"BlocksOfDepth", R"(input %x: u8[2, 8, 3, 2]
  %d: u8[2, 2, 6, 4] = DepthToSpace(%x) {blocksize = 2, mode = "CRD"} @n29
  %s: u8[2, 8, 3, 2] = SpaceToDepth(%d) {blocksize = 2} @n30
  output d = %d
  output s = %s)"},
    {"LinearResizeShrinksByItsScale", R"(input %x: f32[1, 2, 7, 9]
  constant %n: f32[0] = []
  constant %f: f32[4] = [1, 1, 0.6, 0.45]
  %y: f32[1, 2, 4, 4] = Resize(%x, %n, %f) {mode = "linear"} @n31
  %z: f32[1, 2, 4, 4] = Resize(%x, %n, %f) {mode = "cubic", antialias = 1} @n32
  output y = %y
  output z = %z)"},
    {"NearestResizeToAProductOfFloats", R"(input %x: f32[1, 1, 10]
  constant %n: f32[0] = []
  constant %f: f32[3] = [1, 1, 2.3]
  %y: f32[1, 1, 23] = Resize(%x, %n, %f) {mode = "nearest",
    coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"} @n
  output y = %y)"},
    {"NearestResizeByCorners", R"(input %x: f32[2, 1, 4, 3]
  constant %n: f32[0] = []
  constant %f: f32[0] = []
  constant %t: i64[4] = [2, 1, 7, 8]
  %y: f32[2, 1, 7, 8] = Resize(%x, %n, %f, %t) {mode = "nearest",
    coordinate_transformation_mode = "align_corners", nearest_mode = "ceil"} @n33
  output y = %y)"},
    {"NearestResizeToFewPixels", R"(input %x: f32[1, 1, 256, 256]
  constant %n: f32[0] = []
  constant %f: f32[0] = []
  constant %t: i64[4] = [1, 1, 4, 3]
  %y: f32[1, 1, 4, 3] = Resize(%x, %n, %f, %t) {mode = "nearest",
    coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"} @n
  output y = %y)"},
    {"SmoothResizeToFewPixels", R"(input %x: f32[1, 2, 300, 200]
  constant %n: f32[0] = []
  constant %f: f32[4] = [1, 1, 0.005, 0.0101]
  constant %t: i64[2] = [2, 3]
  %y: f32[1, 2, 1, 2] = Resize(%x, %n, %f) {mode = "linear", antialias = 1} @y
  %z: f32[1, 2, 2, 1] = Resize(%x, %n, %n, %t) {mode = "cubic", antialias = 1, axes = ints [2, 3],
    keep_aspect_ratio_policy = "not_larger"} @z
  output y = %y
  output z = %z)"},
    {"GroupsOfChannels", R"(input %x: f32[2, 6, 5, 3]
  input %s: f32[6]
  input %b: f32[6]
  %g: f32[2, 6, 5, 3] = GroupNormalization(%x, %s, %b) {num_groups = 3} @n34
  %y: f32[2, 6, 5, 3] = InstanceNormalization(%g, %s, %b) @n35
  %z: f32[2, 6, 5, 3] = LRN(%y) {size = 3} @n36
  output y = %y
  output z = %z)"},
    {"RootMeanSquares", R"(input %x: f32[4, 3, 8]
  input %s: f32[8]
  %y: f32[4, 3, 8] = RMSNormalization(%x, %s) {epsilon = 0.01} @n37
  output y = %y)"},
    {"DynamicProductsOfBytes", R"(input %x: f32[3, 5, 12]
  input %w: u8[12, 7]
  constant %z: u8[] = [2]
  %q: u8[3, 5, 12], %s: f32[], %p: u8[] = DynamicQuantizeLinear(%x) @q
  %y: i32[3, 5, 7] = MatMulInteger(%q, %w, %p, %z) @y
  input %v: i8[3, 12, 2]
  %u: i32[3, 5, 2] = MatMulInteger(%q, %v) @u
  output q = %q
  output s = %s
  output y = %y
  output u = %u)"},
    {"ShuffledChannelsBetweenConvolutions", R"(input %x: f32[2, 6, 5, 4]
  input %w: f32[6, 6, 1, 1]
  constant %apart: i64[5] = [2, 2, 3, 5, 4]
  constant %together: i64[4] = [2, 6, 5, 4]
  constant %wider: i64[4] = [2, 1, 10, 12]
  %a: f32[2, 6, 5, 4] = Conv(%x, %w) @first
  %b: f32[2, 2, 3, 5, 4] = Reshape(%a, %apart) @apart
  %c: f32[2, 3, 2, 5, 4] = Transpose(%b) {perm = ints[0, 2, 1, 3, 4]} @shuffle
  %d: f32[2, 6, 5, 4] = Reshape(%c, %together) @together
  %y: f32[2, 6, 5, 4] = Conv(%d, %w) @second
  %e: f32[2, 5, 2, 4, 3] = Transpose(%b) {perm = ints[0, 3, 1, 4, 2]} @turn
  %z: f32[2, 1, 10, 12] = Reshape(%e, %wider) @wider
  output y = %y
  output z = %z)"},
    {"ScaledProductsOfBytesWithTheirTails", R"(input %x: f32[2, 3, 4]
  input %r: f32[2, 3, 5]
  constant %w: i8[4, 5] = [1, -2, 3, -4, 5, 60, 70, -80, 90, 100, -128, 127, 0, 11, 12, 9, 8, 7, 6, -5]
  constant %u: u8[4, 5] = [1, 2, 3, 4, 5, 60, 70, 80, 90, 100, 128, 255, 0, 11, 12, 9, 8, 7, 6, 5]
  constant %none: i8[] = [0]
  constant %z: u8[] = [100]
  constant %ws: f32[] = [0.01]
  constant %cs: f32[5] = [0.01, 0.02, 0.03, 0.04, 0.05]
  constant %b: f32[5] = [1.0, 2.0, 3.0, 4.0, 5.0]
  %q: u8[2, 3, 4], %s: f32[], %p: u8[] = DynamicQuantizeLinear(%x) @quantize
  %s1: f32[] = Mul(%s, %ws) @scale
  %s2: f32[5] = Mul(%s, %cs) @scales
  %i: i32[2, 3, 5] = MatMulInteger(%q, %w, %p, %none) @signed
  %j: i32[2, 3, 5] = MatMulInteger(%q, %u, %p, %z) @unsigned
  %f: f32[2, 3, 5] = Cast(%i) {to = dtype f32} @real1
  %g: f32[2, 3, 5] = Cast(%j) {to = dtype f32} @real2
  %m: f32[2, 3, 5] = Mul(%f, %s1) @scaled
  %n: f32[2, 3, 5] = Mul(%s2, %g) @scaled_by_column
  %h: f32[2, 3, 5] = Add(%m, %b) @bias
  %a: f32[2, 3, 5] = Relu(%h) @activation
  %y: f32[2, 3, 5] = Add(%n, %r) @residual
  output a = %a
  output y = %y)"},
    {"RecurrentCellsInBothDirections", R"(input %x: f32[4, 3, 5]
  input %w: f32[2, 24, 5]
  input %r: f32[2, 24, 6]
  input %b: f32[2, 48]
  input %h: f32[2, 3, 6]
  input %c: f32[2, 3, 6]
  %y: f32[4, 2, 3, 6], %p: f32[2, 3, 6], %q: f32[2, 3, 6] = LSTM(%x, %w, %r, %b, _, %h, %c) {direction = "bidirectional", hidden_size = 6} @lstm
  output y = %y
  output p = %p
  output q = %q)"},
    {"GatesThatResetAfterTheProduct", R"(input %x: f32[3, 4, 5]
  input %w: f32[1, 18, 5]
  input %r: f32[1, 18, 6]
  input %b: f32[1, 36]
  %y: f32[3, 4, 1, 6], %h: f32[3, 1, 6] = GRU(%x, %w, %r, %b) {direction = "reverse", hidden_size = 6, linear_before_reset = 1, layout = 1} @gru
  output y = %y
  output h = %h)"},
    {"ProductsWithFactorsAndVectors", R"(input %a: f32[5, 4]
  input %b: f32[6, 5]
  input %c: f32[4, 1]
  input %v: f32[6]
  %y: f32[4, 6] = Gemm(%a, %b, %c) {transA = 1, transB = 1, alpha = 0.5, beta = -2.0} @gemm
  %z: f32[4] = MatMul(%y, %v) @matrix
  output y = %y
  output z = %z)"},
    {"AttentionByItsPieces", R"(input %q: f32[2, 3, 4, 8]
  input %k: f32[2, 3, 6, 8]
  input %v: f32[2, 3, 6, 5]
  constant %m: f32[4, 6] = [0, 0, 0, 0, 0, 0, -inf, -inf, -inf, -inf, -inf, -inf, 1, 2, -inf, 0, 0, 0, 0, 0, 0, 0, -1, -inf]
  %y: f32[2, 3, 4, 5] = Attention(%q, %k, %v, %m) {scale = 0.25} @attention
  output y = %y)"},
    {"EmptyPartsOfASplit", R"(input %x: f32[3, 4]
  constant %n: i64[2] = [4, 0]
  %a: f32[3, 4], %b: f32[3, 0] = Split(%x, %n) {axis = 1} @n38
  %c: f32[3, 4] = Relu(%a) @n39
  %y: f32[3, 4] = Concat(%c, %b) {axis = 1} @n40
  output y = %y)"},
};

INSTANTIATE_TEST_SUITE_P(Cases, Breadth, testing::ValuesIn(kCases), [](const auto& test) {
  return std::string(test.param.name);
});

struct ShapeCase {
  const char* name;
  const char* node;    // from %x: f32[4, 1, 4] and %p
  const char* agrees;  // what %p is
  const char* differs;
};

// %p is known when it runs, and no sooner.
std::string graph_of(const ShapeCase& one, const char* parameter) {
  std::string numbers = parameter;
  std::string count = std::to_string(std::count(numbers.begin(), numbers.end(), ',') + 1);
  return "graph {\n  input %x: f32[4, 1, 4]\n  input %r: i64[" + count + "]\n  constant %z: i64[" +
         count + "] = [" + (count == "1" ? "0" : (count == "2" ? "0, 0" : "0, 0, 0")) +
         "]\n  constant %c: i64[" + count + "] = [" + numbers + "]\n  %m: i64[" + count +
         "] = Mul(%r, %z) @m\n  %p: i64[" + count + "] = Add(%m, %c) @p\n  " + one.node +
         "\n  output y = %y\n}";
}

class ComputedShape : public BothBackends, public testing::WithParamInterface<ShapeCase> {};

TEST_P(ComputedShape, IsRightWhateverIsDeclared) {
  expect_same(graph_of(GetParam(), GetParam().agrees));
  OwnedGraph differs = parse(graph_of(GetParam(), GetParam().differs));

  Outcome expected = run(differs, {{"backend", "reference"}});
  Outcome got = run(differs, {{"backend", "onednn"}});

  EXPECT_EQ(got.error.empty(), expected.error.empty()) << got.error;
  if (expected.error.empty()) expect_near(got.outputs[0], expected.outputs[0], 0);
}

constexpr ShapeCase kShapeCases[] = {
    {"Reshape", "%y: f32[2, 8] = Reshape(%x, %p) @n", "2, -1", "8, 2"},
    {"ReshapeKeepsAnAxis", "%y: f32[4, 2, 2] = Reshape(%x, %p) @n", "0, 2, 2", "2, 2, 4"},
    {"Expand", "%y: f32[4, 3, 4] = Expand(%x, %p) @n", "3, 1", "2, 1"},
    {"Squeeze", "%y: f32[4, 4] = Squeeze(%x, %p) @n", "-2", "0"},
    {"Unsqueeze", "%y: f32[1, 4, 1, 4] = Unsqueeze(%x, %p) @n", "0", "3"},
    {"Split", "%y: f32[1, 1, 4], %w: f32[3, 1, 4] = Split(%x, %p) {axis = 0} @n", "1, 3", "2, 2"},
};

INSTANTIATE_TEST_SUITE_P(Cases,
                         ComputedShape,
                         testing::ValuesIn(kShapeCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Sums, products and squares of integers that are too large wrap around on every backend.
TEST_F(BothBackends, ReductionsOfIntegersWrapAround) {
  expect_same(R"(graph {
  input %x: i64[2, 3]
  constant %much: i64[] = [9223372036854775807]
  constant %a: i64[1] = [1]
  %l: i64[2, 3] = BitwiseOr(%x, %much) @n0
  %s: i64[2] = ReduceSum(%l, %a) {keepdims = 0} @n1
  %m: i64[2] = ReduceMean(%l, %a) {keepdims = 0} @n2
  %p: i64[2] = ReduceProd(%l, %a) {keepdims = 0} @n3
  %q: i64[2] = ReduceSumSquare(%l, %a) {keepdims = 0} @n4
  output s = %s
  output m = %m
  output p = %p
  output q = %q
})");
}

// By a row of the table that somebody else may write: the chain knows expressions alone.
TEST_F(BothBackends, AChainThroughAReductionIsOneStep) {
  const char* text = R"(graph {
  input %x: f32[64, 100]
  constant %last: i64[1] = [-1]
  %e: f32[64, 100] = Exp(%x) @n1
  %s: f32[64, 1] = ReduceSum(%e, %last) {keepdims = 1} @n2
  %l: f32[64, 1] = Log(%s) @n3
  %y: f32[64, 100] = Sub(%x, %l) @n4
  output y = %y
})";
  expect_same(text, 1e-6);
  Outcome outcome = run(parse(text), {{"backend", "onednn"}});
  const json& part = outcome.plan["partitions"][0];
  EXPECT_EQ(part["steps"], 1) << outcome.plan;
  EXPECT_EQ(part["kernels"], json({{"tenon:rows (generated)", 1}})) << outcome.plan;
  // x in, y out, the constant beside: nothing else is moved but a number for each row.
  EXPECT_LT(part["bytes_moved"].get<double>(), 1.1 * part["bytes_moved_ideal"].get<double>());
}

// A general power has no generated code, and takes many times as long.
TEST_F(BothBackends, AConstantExponentIsANumberOfTheChain) {
  const char* text = R"(graph {
  input %x: f32[64, 100]
  constant %last: i64[1] = [-1]
  constant %two: f32[] = [2]
  %m: f32[64, 1] = ReduceMean(%x, %last) {keepdims = 1} @n1
  %d: f32[64, 100] = Sub(%x, %m) @n2
  %p: f32[64, 100] = Pow(%d, %two) @n3
  %v: f32[64, 1] = ReduceMean(%p, %last) {keepdims = 1} @n4
  %s: f32[64, 1] = Sqrt(%v) @n5
  %y: f32[64, 100] = Div(%d, %s) @n6
  output y = %y
})";
  expect_same(text, 1e-6);
  const json part = run(parse(text), {{"backend", "onednn"}}).plan["partitions"][0];
  for (const auto& [kernel, count] : part["kernels"].items())
    EXPECT_EQ(kernel.find("interpreted"), std::string::npos) << part;
}

TEST_F(BothBackends, ThePlanSaysThatAProductIsSymmetric) {
  const char* text = R"(graph {
  input %x: f32[256, 768]
  constant %rows: i64[1] = [0]
  %t: f32[768, 256] = Transpose(%x) {perm = ints[1, 0]} @n1
  %m: f32[768] = ReduceMean(%x, %rows) {keepdims = 0} @n2
  %d: f32[256, 768] = Sub(%x, %m) @n3
  %y: f32[768, 768] = MatMul(%t, %d) @n4
  output y = %y
})";
  expect_same(text, 1e-6);
  Outcome outcome = run(parse(text), {{"backend", "onednn"}});
  EXPECT_NE(outcome.plan.dump().find("(symmetric)"), std::string::npos) << outcome.plan;
}

}  // namespace
}  // namespace tenon::test
