// SPDX-License-Identifier: Apache-2.0
// What a training step runs beside inference, against the reference: norms over the batch's own
// statistics and their gradients, with and without a forward step that keeps something for them.

#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Case {
  const char* name;
  const char* body;             // declarations and nodes
  size_t compared_in_bf16 = 9;  // outputs; a maximum of numbers that bf16 makes equal moves
};

class Training : public BothBackends, public testing::WithParamInterface<Case> {
 protected:
  std::string text() const { return std::string("graph {\n") + GetParam().body + "\n}"; }
};

TEST_P(Training, AgreesWithTheReference) {
  expect_same(text(), 5e-5);
}

TEST_P(Training, AgreesInBf16) {
  OwnedGraph graph = parse(text());
  Outcome expected = run(graph, {{"backend", "reference"}});
  Outcome got = run(graph, {{"backend", "onednn"}, {"threads", 2}, {"precision", "bf16"}});
  ASSERT_EQ(expected.error, "");
  ASSERT_EQ(got.error, "");
  EXPECT_EQ(got.plan["fallback_nodes"], json::array());
  size_t compared = std::min(expected.outputs.size(), GetParam().compared_in_bf16);
  for (size_t k = 0; k < compared; ++k) {
    ASSERT_EQ(got.outputs[k].size(), expected.outputs[k].size());
    double apart = 0, size = 0;  // of the whole: a mask may differ where a value is almost 0
    for (size_t i = 0; i < got.outputs[k].size(); ++i) {
      apart += std::pow(got.outputs[k][i] - expected.outputs[k][i], 2);
      size += std::pow(expected.outputs[k][i], 2);
    }
    EXPECT_LT(std::sqrt(apart), 0.1 * std::sqrt(size) + 1e-3) << "output " << k;
  }
}

constexpr Case kCases[] = {
    {"TheGradientOfSoftmax", R"(input %y: f32[3, 17, 40]
  input %d: f32[3, 17, 40]
  constant %last: i64[1] = [-1]
  constant %half: f32[] = [0.5]
  %m: f32[3, 17, 40] = Mul(%y, %d) @n1
  %s: f32[3, 17, 1] = ReduceSum(%m, %last) {keepdims = 1} @n2
  %r: f32[3, 17, 40] = Sub(%d, %s) @n3
  %p: f32[3, 17, 40] = Mul(%y, %r) @n4
  %dx: f32[3, 17, 40] = Mul(%p, %half) @n5
  output dx = %dx)"},
    {"GradientsOfAttention", R"(input %p: f32[2, 3, 96, 96]
  input %d: f32[2, 96, 3, 32]
  input %x: f32[200, 96]
  input %rows: f32[7, 96]
  constant %two: i64[7, 1] = [0, 3, 199, 3, 5, 6, 3]
  %dy: f32[2, 3, 96, 32] = Transpose(%d) {perm = ints[0, 2, 1, 3]} @n1
  %transposed: f32[2, 3, 96, 96] = Transpose(%p) {perm = ints[0, 1, 3, 2]} @n2
  %dv: f32[2, 3, 96, 32] = MatMul(%transposed, %dy) @n3
  %heads: f32[2, 96, 3, 32] = Transpose(%dv) {perm = ints[0, 2, 1, 3]} @n4
  %more: f32[2, 3, 96, 32] = MatMul(%transposed, %dy) @n5
  %twice: f32[2, 3, 96, 32] = Mul(%more, %more) @n6
  %zero: f32[200, 96] = Sub(%x, %x) @n7
  %table: f32[200, 96] = ScatterND(%zero, %two, %rows) {reduction = "add"} @n8
  %kept: f32[200, 96] = ScatterND(%x, %two, %rows) {reduction = "add"} @n9
  output heads = %heads
  output twice = %twice
  output table = %table
  output kept = %kept)"},
    // Few and many rows and columns: what is copied, packed or read in place on tiles differs.
    {"GradientsOfWeights", R"(input %x: f32[40, 800]
  input %few: f32[40, 100]
  input %wide: f32[40, 800]
  input %dy: f32[40, 300]
  input %narrow: f32[40, 10]
  %rx: f32[40, 800] = Tanh(%x) @n1
  %rf: f32[40, 100] = Tanh(%few) @n2
  %rw: f32[40, 800] = Tanh(%wide) @n3
  %rd: f32[40, 300] = Tanh(%dy) @n4
  %rn: f32[40, 10] = Tanh(%narrow) @n5
  %tx: f32[800, 40] = Transpose(%rx) {perm = ints[1, 0]} @n6
  %tf: f32[100, 40] = Transpose(%rf) {perm = ints[1, 0]} @n7
  %packed: f32[800, 300] = MatMul(%tx, %rd) @n8
  %copied: f32[800, 800] = MatMul(%tx, %rw) @n9
  %thin: f32[800, 10] = MatMul(%tx, %rn) @n10
  %low: f32[100, 800] = MatMul(%tf, %rw) @n11
  %small: f32[100, 10] = MatMul(%tf, %rn) @n12
  output packed = %packed
  output copied = %copied
  output thin = %thin
  output low = %low
  output small = %small)"},
    {"WeightsInBothDirections", R"(input %x: f32[130, 192]
  input %w: f32[192, 256]
  input %odd: f32[256, 75]
  %y: f32[130, 256] = MatMul(%x, %w) @n1
  %z: f32[130, 75] = MatMul(%y, %odd) @n2
  %transposed_odd: f32[75, 256] = Transpose(%odd) {perm = ints[1, 0]} @n3
  %dy: f32[130, 256] = MatMul(%z, %transposed_odd) @n4
  %transposed: f32[256, 192] = Transpose(%w) {perm = ints[1, 0]} @n5
  %dx: f32[130, 192] = MatMul(%dy, %transposed) @n6
  %columns: f32[192, 130] = Transpose(%x) {perm = ints[1, 0]} @n7
  %dw: f32[192, 256] = MatMul(%columns, %dy) @n8
  output z = %z
  output dx = %dx
  output dw = %dw)"},
    {"RowsByTheirSizeAndWhatIsReadBesides", R"(input %x: f32[70, 300]
  input %w: f32[300]
  input %e: f32[70, 1]
  constant %last: i64[1] = [1]
  %q: f32[70, 300] = Mul(%x, %x) @n1
  %mean: f32[70, 1] = ReduceMean(%q, %last) {keepdims = 1} @n2
  %most: f32[70, 1] = ReduceMax(%x, %last) {keepdims = 1} @n3
  %a: f32[70, 1] = Abs(%e) @n4
  %sum: f32[70, 1] = Add(%mean, %a) @n5
  %root: f32[70, 1] = Sqrt(%sum) @n6
  %over: f32[70, 300] = Div(%x, %root) @n7
  %y: f32[70, 300] = Mul(%over, %w) @n8
  %t: f32[70, 300] = Sub(%q, %most) @n9
  %z: f32[70, 300] = Tanh(%t) @n10
  output y = %y
  output q = %q
  output z = %z
  output mean = %mean)"},
    {"WeightsRoundedByScalesThatFollowThem", R"(input %x: f32[3, 6]
  input %w: f32[6, 4]
  constant %axes: i64[1] = [0]
  constant %most: f32[] = [7]
  constant %zero: i8[4] = [0, 0, 0, 0]
  %a: f32[6, 4] = Abs(%w) @n1
  %m: f32[4] = ReduceMax(%a, %axes) {keepdims = 0} @n2
  %s: f32[4] = Div(%m, %most) @n3
  %q: i8[6, 4] = QuantizeLinear(%w, %s, %zero) {axis = 1} @n4
  %r: f32[6, 4] = DequantizeLinear(%q, %s, %zero) {axis = 1} @n5
  %y: f32[3, 4] = MatMul(%x, %r) @n6
  output y = %y)"},
    {"RoundingHeldByATensorsOwnScale", R"(input %x: f32[2, 3, 5]
  input %t: f32[]
  constant %zero: u8[] = [120]
  %s: f32[] = Exp(%t) @n1
  %h: f32[2, 3, 5] = Mul(%x, %x) @n2
  %q: u8[2, 3, 5] = QuantizeLinear(%h, %s, %zero) @n3
  %r: f32[2, 3, 5] = DequantizeLinear(%q, %s, %zero) @n4
  output r = %r)"},
    {"QuantizedValuesThatAreReadByMore", R"(input %x: f32[2, 3, 5]
  input %t: f32[3]
  constant %zero: u8[3] = [0, 7, 255]
  %s: f32[3] = Exp(%t) @n1
  %q: u8[2, 3, 5] = QuantizeLinear(%x, %s, %zero) @n2
  %r: f32[2, 3, 5] = DequantizeLinear(%q, %s, %zero) @n3
  output q = %q
  output r = %r)"},
    {"ScalesOfBlocks", R"(input %x: f32[5, 4]
  constant %s: f32[3, 4] = [0.5, 0.25, 1, 0.125, 0.5, 0.25, 1, 0.125, 2, 0.25, 1, 0.125]
  constant %z: i8[3, 4] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -100]
  %q: i8[5, 4] = QuantizeLinear(%x, %s, %z) {axis = 0, block_size = 2} @n1
  %r: f32[5, 4] = DequantizeLinear(%q, %s, %z) {axis = 0, block_size = 2} @n2
  output q = %q
  output r = %r)"},
    {"StatisticsOfTheBatch", R"(input %x: f32[3, 5, 4, 4]
  input %s: f32[5]
  input %b: f32[5]
  input %m: f32[5]
  input %v: f32[5]
  %y: f32[3, 5, 4, 4], %nm: f32[5], %nv: f32[5] = BatchNormalization(%x, %s, %b, %m, %v) {momentum = 0.8, training_mode = 1} @n1
  output y = %y
  output nm = %nm
  output nv = %nv)"},
    {"ReluIntoTheNormAndItsGradient", R"(input %x: f32[3, 16, 4, 4]
  input %d: f32[3, 16, 4, 4]
  input %s: f32[16]
  input %b: f32[16]
  constant %zero: f32[] = [0]
  constant %m: f32[16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  %y: f32[3, 16, 4, 4], %nm: f32[16], %nv: f32[16] = BatchNormalization(%x, %s, %b, %m, %m) {training_mode = 1} @n1
  %r: f32[3, 16, 4, 4] = Relu(%y) @n2
  %g: bool[3, 16, 4, 4] = Greater(%y, %zero) @n3
  %w: f32[3, 16, 4, 4] = Where(%g, %d, %zero) @n4
  %dx: f32[3, 16, 4, 4], %ds: f32[16], %db: f32[16] = tenon:BatchNormGrad(%w, %x, %s) @n5
  output r = %r
  output dx = %dx
  output ds = %ds
  output db = %db)"},
    {"TheMaskIsReadByMore", R"(input %x: f32[2, 8, 3, 3]
  input %d: f32[2, 8, 3, 3]
  input %s: f32[8]
  constant %zero: f32[] = [0]
  constant %m: f32[8] = [0, 0, 0, 0, 0, 0, 0, 0]
  %y: f32[2, 8, 3, 3] = BatchNormalization(%x, %s, %m, %m, %m) {training_mode = 1} @n1
  %a: f32[2, 8, 3, 3] = Add(%y, %x) @n2
  %r: f32[2, 8, 3, 3] = Relu(%a) @n3
  %g: bool[2, 8, 3, 3] = Greater(%a, %zero) @n4
  %w: f32[2, 8, 3, 3] = Where(%g, %d, %zero) @n5
  %dx: f32[2, 8, 3, 3], %ds: f32[8], %db: f32[8] = tenon:BatchNormGrad(%w, %x, %s) @n6
  %t: f32[2, 8, 3, 3] = Add(%dx, %w) @n7
  output r = %r
  output t = %t)"},
    {"BatchNormGradAlone", R"(input %x: f32[4, 6]
  input %d: f32[4, 6]
  input %s: f32[6]
  %dx: f32[4, 6], %ds: f32[6], %db: f32[6] = tenon:BatchNormGrad(%d, %x, %s) {epsilon = 0.01} @n1
  output dx = %dx
  output ds = %ds
  output db = %db)"},
    {"LayerNormGradAlone", R"(input %x: f32[4, 3, 10]
  input %d: f32[4, 3, 10]
  input %s: f32[3, 10]
  %dx: f32[4, 3, 10], %ds: f32[3, 10], %db: f32[3, 10] = tenon:LayerNormGrad(%d, %x, %s) {axis = 1, epsilon = 0.01} @n1
  output dx = %dx
  output ds = %ds
  output db = %db)"},
    {"LayerNormAndItsGradient", R"(input %x: f32[5, 40]
  input %d: f32[5, 40]
  input %s: f32[40]
  input %b: f32[40]
  %y: f32[5, 40] = LayerNormalization(%x, %s, %b) @n1
  %e: f32[5, 40] = Mul(%y, %d) @n2
  %dx: f32[5, 40], %ds: f32[40], %db: f32[40] = tenon:LayerNormGrad(%e, %x, %s) @n3
  output y = %y
  output dx = %dx
  output ds = %ds
  output db = %db)"},
    {"GradientsOfWeightsAsProducts", R"(input %x: f32[2, 20, 6, 4]
  input %d: f32[2, 24, 6, 4]
  input %e: f32[2, 24, 3, 2]
  constant %s3: i64[4] = [24, 20, 3, 3]
  constant %s1: i64[4] = [24, 20, 1, 1]
  %a: f32[24, 20, 3, 3] = tenon:ConvWeightGrad(%x, %d, %s3) {pads = ints[1, 1, 1, 1]} @n1
  %b: f32[24, 20, 1, 1] = tenon:ConvWeightGrad(%x, %d, %s1) @n2
  %c: f32[24, 20, 3, 3] = tenon:ConvWeightGrad(%x, %e, %s3) {pads = ints[1, 1, 1, 1], strides = ints[2, 2]} @n3
  %f: f32[24, 20, 1, 1] = tenon:ConvWeightGrad(%x, %e, %s1) {strides = ints[2, 2]} @n4
  output a = %a
  output b = %b
  output c = %c
  output f = %f)"},
    {"MaxPoolKeepsItsPlaces", R"(input %x: f32[2, 8, 7, 7]
  input %d: f32[2, 8, 4, 4]
  %y: f32[2, 8, 4, 4] = MaxPool(%x) {kernel_shape = ints[3, 3], pads = ints[1, 1, 1, 1], strides = ints[2, 2]} @n1
  %e: f32[2, 8, 4, 4] = Mul(%y, %d) @n2
  %dx: f32[2, 8, 7, 7] = tenon:MaxPoolGrad(%e, %x) {kernel_shape = ints[3, 3], pads = ints[1, 1, 1, 1], strides = ints[2, 2]} @n3
  output y = %y
  output dx = %dx)",
     1},
};
using LargeMeans = BothBackends;

// In f32 a mean of 10,000 is rounded to a thousandth.
constexpr const char* kLargeMeans = R"(graph {
  input %small: f32[5, 300]
  input %d: f32[5, 300]
  input %s: f32[300]
  input %b: f32[300]
  constant %much: f32[] = [10000]
  %x: f32[5, 300] = Add(%small, %much) @n1
  %y: f32[5, 300] = LayerNormalization(%x, %s, %b) @n2
  %dx: f32[5, 300], %ds: f32[300], %db: f32[300] = tenon:LayerNormGrad(%d, %x, %s) @n3
  output y = %y
  output dx = %dx
  output ds = %ds
  output db = %db
})";

TEST_F(LargeMeans, AreTakenFromRowsBeforeDigitsAreLost) {
  expect_same(kLargeMeans, 3e-6);
}

TEST_F(LargeMeans, AreReadAsTheyAreKeptInBf16Too) {
  OwnedGraph graph = parse(kLargeMeans);
  const Outcome want = run(graph, {{"backend", "reference"}});
  const Outcome got = run(graph, {{"backend", "onednn"}, {"precision", "bf16"}});
  ASSERT_EQ(want.error + got.error, "");
  for (size_t i = 0; i < want.outputs.size(); ++i)
    expect_near(got.outputs[i], want.outputs[i], 0.02);
}

// A loss of labels, and its gradient: a float for each label would be half of what is in memory.
constexpr const char* kLabels = R"(graph {
  input %x: f32[64, 3000]
  input %label: i64[64, 1]
  input %seed: f32[64, 1]
  input %classes: i64[3000]
  constant %last: i64[1] = [-1]
  %hit: bool[64, 3000] = Equal(%label, %classes) @equal
  %one: f32[64, 3000] = Cast(%hit) {to = dtype f32} @one_hot
  %log: f32[64, 3000] = LogSoftmax(%x) {axis = -1} @log
  %kept: f32[64, 3000] = Mul(%log, %one) @kept
  %loss: f32[64, 1] = ReduceSum(%kept, %last) {keepdims = 1} @loss
  %back: f32[64, 3000] = Mul(%seed, %one) @back
  %sum: f32[64, 1] = ReduceSum(%back, %last) {keepdims = 1} @sum
  %p: f32[64, 3000] = Exp(%log) @exp
  %scaled: f32[64, 3000] = Mul(%p, %sum) @scaled
  %dx: f32[64, 3000] = Sub(%back, %scaled) @dx
  output loss = %loss
  output dx = %dx
})";

using Labels = BothBackends;

TEST_F(Labels, AreBytesUntilTheyAreRead) {
  expect_same(kLabels);
  const Outcome got = run(parse(kLabels), {{"backend", "onednn"}});
  for (const json& layer : got.plan["partitions"][0]["layers"])
    EXPECT_NE(layer["name"], "one_hot") << "a layer of its own";
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         Training,
                         testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& made) {
                           return std::string(made.param.name);
                         });

}  // namespace
}  // namespace tenon::test
