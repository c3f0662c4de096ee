// SPDX-License-Identifier: Apache-2.0
#include "fusion_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;

TEST_F(FusionTest, ConstantsThatOnlyConstantsMakeAreComputed) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2]
  constant %a: f32[2] = [1, 2]
  constant %b: f32[2] = [3, 5]
  %c: f32[2] = Mul(%a, %b) @mul
  %y: f32[2] = Add(%x, %c) @add
  output y = %y
})");

  OwnedGraph folded = apply(graph, "fusion.constants");

  EXPECT_THAT(operators(folded), ElementsAre("Add"));
  EXPECT_EQ(run(folded), run(graph));
}

TEST_F(FusionTest, ShapesThatAreKnownAreConstants) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 6]
  constant %two: i64[1] = [4]
  constant %first: i64[] = [1]
  %s: i64[2] = Shape(%x) @shape
  %g: i64[] = Gather(%s, %first) @gather
  constant %minus: i64[1] = [-1]
  %one: i64[1] = Reshape(%g, %minus) @to_list
  %dims: i64[1] = Sub(%one, %two) @sub
  %t: i64[2] = Concat(%dims, %one) {axis = 0} @dims
  %y: f32[2, 6] = Reshape(%x, %t) @reshape
  output y = %y
})");

  OwnedGraph folded = apply(graph, "fusion.fold");

  EXPECT_THAT(operators(folded), IsEmpty());  // [2, 6] reshaped to [2, 6]
}

TEST_F(FusionTest, TensorsOfASequenceOfKnownLengthAreThoseOfASplit) {
  const std::string text = R"(graph {
  input %x: f32[2, 5]
  constant %sizes: i64[2] = [2, 3]
  constant %two: i64[] = [2]
  constant %one: i64[] = [1]
  constant %last: i64[] = [-1]
  %s: seq f32[*] = SplitToSequence(%x, %sizes) {axis = 1} @ns
  %a: f32[2, 3] = SequenceAt(%s, %one) @second
  %b: f32[2, 3] = SequenceAt(%s, %last) @last
  %t: seq f32[*] = SplitToSequence(%x, %two) {axis = -1} @nt
  %c: f32[2, 1] = SequenceAt(%t, %last) @odd
  %u: seq f32[*] = SplitToSequence(%x) {axis = 0, keepdims = 0} @nu
  %d: f32[5] = SequenceAt(%u, %one) @row
  %n: i64[] = SequenceLength(%u) @length
  %ab: f32[2, 3] = Mul(%a, %b) @nab
  %abc: f32[2, 3] = Mul(%ab, %c) @nabc
  %e: f32[1] = ReduceSum(%d) {keepdims = 1} @ne
  %y: f32[2, 3] = Add(%abc, %e) @ny
  output y = %y
  output n = %n
})";
  OwnedGraph graph = parse(text), split = apply(graph, "fusion.sequences");
  EXPECT_THAT(operators(split),
              testing::UnorderedElementsAre("Split", "Split", "Gather", "Mul", "Mul", "ReduceSum",
                                            "Add", "SplitToSequence", "SequenceLength"));
  EXPECT_EQ(run(split), run(graph));
  EXPECT_TRUE(split.view().find("a"));
}

TEST_F(FusionTest, WeightsThatAreStoredQuantizedStaySo) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[1, 2]
  constant %q: i8[2, 2] = [1, 2, 3, 4]
  constant %scale: f32[] = [0.5]
  %w: f32[2, 2] = DequantizeLinear(%q, %scale) @dequantize
  %y: f32[1, 2] = MatMul(%x, %w) @matmul
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.fold")), ElementsAre("DequantizeLinear", "MatMul"));
}

TEST_F(FusionTest, NodesThatNobodyUsesAreRemovedWithWhatFedThem) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2]
  %a: f32[2] = Relu(%x) @a
  %b: f32[2] = Neg(%a) @b
  %y: f32[2] = Abs(%x) @y
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.dead_code")), ElementsAre("Abs"));
}

TEST_F(FusionTest, TransposesThatUndoEachOtherVanish) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 3, 4]
  %a: f32[4, 2, 3] = Transpose(%x) {perm = ints [2, 0, 1]} @a
  %b: f32[2, 3, 4] = Transpose(%a) {perm = ints [1, 2, 0]} @b
  %y: f32[2, 3, 4] = Relu(%b) @y
  output y = %y
})");

  OwnedGraph simple = apply(graph, "fusion.fold");

  EXPECT_THAT(operators(simple), ElementsAre("Relu"));
  EXPECT_EQ(run(simple), run(graph));
}

TEST_F(FusionTest, TheGradientOfATransposedWeightIsMadeInTheWeightsLayout) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[7, 3]
  input %g: f32[7, 4]
  %t: f32[3, 7] = Transpose(%x) {perm = ints [1, 0]} @t
  %p: f32[3, 4] = MatMul(%t, %g) @product
  %w: f32[4, 3] = Transpose(%p) {perm = ints [1, 0]} @turn
  %y: f32[4, 3] = Neg(%w) @y
  output y = %y
})");

  OwnedGraph simple = apply(graph, "fusion.default");

  EXPECT_THAT(operators(simple), ElementsAre("Transpose", "MatMul", "Neg"));
  EXPECT_THAT(text(simple), HasSubstr("@product"));
  EXPECT_THAT(run(simple), Pointwise(testing::FloatEq(), run(graph)));
}

TEST_F(FusionTest, ATransposeInTheRightOperandServesAsWell) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 5, 3]
  input %g: f32[2, 4, 3]
  %t: f32[2, 3, 4] = Transpose(%g) {perm = ints [0, 2, 1]} @t
  %p: f32[2, 5, 4] = MatMul(%x, %t) @product
  %y: f32[2, 4, 5] = Transpose(%p) {perm = ints [0, 2, 1]} @turn
  output y = %y
})");

  OwnedGraph simple = apply(graph, "fusion.product_transpose");

  EXPECT_THAT(operators(simple), ElementsAre("Transpose", "MatMul"));
  EXPECT_THAT(run(simple), Pointwise(testing::FloatEq(), run(graph)));
}

TEST_F(FusionTest, ATransposedProductThatOthersReadOrWhoseWeightsAreConstantStays) {
  OwnedGraph shared = parse(R"(graph {
  input %x: f32[7, 3]
  input %g: f32[7, 4]
  %t: f32[3, 7] = Transpose(%x) {perm = ints [1, 0]} @t
  %p: f32[3, 4] = MatMul(%t, %g) @product
  %y: f32[4, 3] = Transpose(%p) {perm = ints [1, 0]} @turn
  output y = %y
  output p = %p
})");
  OwnedGraph weighted = parse(R"(graph {
  input %x: f32[2, 3]
  constant %w: f32[2, 2] = [1, 2, 3, 4]
  %t: f32[3, 2] = Transpose(%x) {perm = ints [1, 0]} @t
  %p: f32[3, 2] = MatMul(%t, %w) @product
  %y: f32[2, 3] = Transpose(%p) {perm = ints [1, 0]} @turn
  output y = %y
})");

  for (const OwnedGraph* graph : {&shared, &weighted}) {
    EXPECT_THAT(operators(apply(*graph, "fusion.product_transpose")),
                ElementsAre("Transpose", "MatMul", "Transpose"));
  }
}

TEST_F(FusionTest, WhatBroadcastsNeedsNoExpand) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 1]
  input %a: f32[2, 3]
  constant %shape: i64[2] = [2, 3]
  %e: f32[2, 3] = Expand(%x, %shape) @expand
  %y: f32[2, 3] = Sub(%e, %a) @y
  output y = %y
})");

  OwnedGraph simple = apply(graph, "fusion.broadcast");

  EXPECT_THAT(operators(simple), ElementsAre("Sub"));
  EXPECT_EQ(run(simple), run(graph));
}

TEST_F(FusionTest, AnExpandThatGivesTheResultItsShapeStays) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 1]
  input %a: f32[1, 1]
  constant %shape: i64[2] = [2, 3]
  %e: f32[2, 3] = Expand(%x, %shape) @expand
  %y: f32[2, 3] = Sub(%e, %a) @y
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.broadcast")), ElementsAre("Expand", "Sub"));
}

TEST_F(FusionTest, LeadingAxesAreNotJoinedForATransposeAlone) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 3, 4, 5]
  constant %three: i64[3] = [6, 4, 5]
  constant %four: i64[4] = [2, 3, 5, 4]
  %a: f32[6, 4, 5] = Reshape(%x, %three) @a
  %b: f32[6, 5, 4] = Transpose(%a) {perm = ints [0, 2, 1]} @b
  %c: f32[2, 3, 5, 4] = Reshape(%b, %four) @c
  %y: f32[2, 3, 5, 4] = Relu(%c) @y
  output y = %y
})");

  OwnedGraph simple = apply(graph, "fusion.fold");

  EXPECT_THAT(operators(simple), ElementsAre("Transpose", "Relu"));
  EXPECT_EQ(run(simple), run(graph));
}

TEST_F(FusionTest, LeadingAxesThatComeBackOtherwiseStayJoined) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 3, 4, 5]
  constant %three: i64[3] = [6, 4, 5]
  constant %four: i64[4] = [3, 2, 5, 4]
  %a: f32[6, 4, 5] = Reshape(%x, %three) @a
  %b: f32[6, 5, 4] = Transpose(%a) {perm = ints [0, 2, 1]} @b
  %c: f32[3, 2, 5, 4] = Reshape(%b, %four) @c
  %y: f32[3, 2, 5, 4] = Relu(%c) @y
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.fold")),
              ElementsAre("Reshape", "Transpose", "Reshape", "Relu"));
}

constexpr const char* kConvNorm = R"(graph {
  input %x: f32[1, 2, 3, 3]
  constant %w: f32[2, 2, 1, 1] = [1, 2, 3, -1]
  constant %bias: f32[2] = [0.5, -0.5]
  constant %scale: f32[2] = [2, 0.5]
  constant %shift: f32[2] = [1, -1]
  constant %mean: f32[2] = [0.25, 0.75]
  constant %var: f32[2] = [4, 0.25]
  %c: f32[1, 2, 3, 3] = Conv(%x, %w, %bias) @conv
  %y: f32[1, 2, 3, 3] = BatchNormalization(%c, %scale, %shift, %mean, %var) @norm
  output y = %y
})";

TEST_F(FusionTest, ANormalizationGoesIntoItsConvolution) {
  OwnedGraph graph = parse(kConvNorm);

  OwnedGraph folded = apply(graph, "fusion.conv_batch_norm");

  EXPECT_THAT(operators(folded), ElementsAre("Conv"));
  EXPECT_THAT(run(folded), Pointwise(testing::FloatNear(1e-5f), run(graph)));
  EXPECT_EQ(view(services.graph->io_name(folded.get(), TN_LIST_OUTPUTS, 0)), "y");
}

TEST_F(FusionTest, AConvolutionThatOthersReadKeepsItsNormalization) {
  std::string text = kConvNorm;
  text.insert(text.rfind("output"), "output c = %c\n  ");

  EXPECT_THAT(operators(apply(parse(text), "fusion.conv_batch_norm")),
              ElementsAre("Conv", "BatchNormalization"));
}

TEST_F(FusionTest, WhatAnotherDomainFusedIsExpandedWhereItIsNamed) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 3, 4]
  input %w: f32[4, 12]
  input %b: f32[12]
  input %g: f32[4]
  %a: f32[2, 3, 4] = com.microsoft:Attention(%x, %w, %b) {num_heads = 2} @a
  %s: f32[2, 3, 4] = com.microsoft:SkipLayerNormalization(%x, %a, %g) {epsilon = 0.5} @s
  %h: f32[2, 3, 4] = Relu(%s) @h
  output y = %h
})");
  std::string report;

  OwnedGraph expanded = apply(graph, "fusion.expand", &report);

  EXPECT_THAT(operators(expanded), testing::Contains("Softmax"));
  EXPECT_THAT(operators(expanded), testing::Each(testing::Not(HasSubstr("com.microsoft"))));
  EXPECT_THAT(report, HasSubstr("\"expand\": 2"));
  EXPECT_THAT(run(expanded), Pointwise(testing::FloatNear(1e-5f), run(graph)));
  EXPECT_EQ(operators(apply(graph, "fusion.default")), operators(graph));
}

TEST_F(FusionTest, AnOperatorThatThereIsNotOrThatStandsForNoOthersIsNotExpandedInSilence) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2]
  %y: f32[2] = HardSwish(%x) @y
  %z: f32[2] = Exp(%y) @z
  output z = %z
})");
  auto refusal = [&](const char* name) {
    OwnedGraph none;
    return message_of(graph, "fusion.expand", {{"operators", name}}, &none);
  };

  EXPECT_THAT(refusal("HardSwich"),
              HasSubstr("there is no operator 'HardSwich' (did you mean 'HardSwish'?)"));
  EXPECT_THAT(refusal("Exp"), HasSubstr("option operators: Exp stands for no others"));
  EXPECT_EQ(refusal("Attention"), "");  // there may be none
}

// quantizer.dequantize expands these, where floats are asked for.
TEST_F(FusionTest, OperatorsOnStoredIntegersOfAnotherDomainStay) {
  OwnedGraph graph = parse(R"(graph {
  input %x: u8[2]
  constant %s: f32[] = [0.5]
  constant %z: u8[] = [3]
  %y: u8[2] = com.microsoft:QLinearSigmoid(%x, %s, %z, %s, %z) @y
  output y = %y
})");

  EXPECT_THAT(operators(apply(graph, "fusion.expand")), ElementsAre("QLinearSigmoid"));
}

TEST_F(FusionTest, TheDefaultReportsWhatItDid) {
  std::string report;

  apply(parse(kConvNorm), "fusion.default", &report);

  EXPECT_THAT(report, HasSubstr("\"conv_batch_norm\": 1"));
}

TEST_F(FusionTest, ARuleThatIsNotThereIsRefused) {
  EXPECT_THAT(refusal("tenon.pass/1", "fusion.default", {{"skip", {"conv_bach_norm"}}}),
              HasSubstr("option skip: expected names of rules"));
}

}  // namespace
}  // namespace tenon::test
