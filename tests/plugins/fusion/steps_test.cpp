// SPDX-License-Identifier: Apache-2.0
// Operators that exporters write as their steps.
#include "fusion_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::Pointwise;

std::string with(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

class StepsTest : public FusionTest {
 protected:
  // One node of this type is left, with the same numbers and the old name of the output.
  void becomes(const std::string& text, const std::string& rule, const std::string& type) {
    OwnedGraph graph = parse(text);
    OwnedGraph fused = apply(graph, rule);
    EXPECT_THAT(operators(fused), ElementsAre(type));
    EXPECT_EQ(fused.view().outputs()[0].name(), "y");
    EXPECT_THAT(run(fused), Pointwise(testing::FloatNear(1e-5f), run(graph)));
  }
  void stays(const std::string& text, const std::string& rule) {
    OwnedGraph graph = parse(text);
    EXPECT_EQ(this->text(apply(graph, rule)), this->text(graph));
  }
};

const std::string kHardSwish = R"(graph {
  input %x: f32[13]
  constant %three: f32[] = [3]
  constant %zero: f32[] = [0]
  constant %six: f32[] = [6]
  %a: f32[13] = Add(%x, %three) @a
  %b: f32[13] = Clip(%a, %zero, %six) @b
  %c: f32[13] = Mul(%x, %b) @c
  %y: f32[13] = Div(%c, %six) @y
  output y = %y
})";

TEST_F(StepsTest, HardSwishIsFound) {
  becomes(kHardSwish, "fusion.hard_swish", "HardSwish");
}
TEST_F(StepsTest, HardSwishIsWrittenOut) {
  EXPECT_EQ(text(apply(parse(kHardSwish), "fusion.hard_swish")), R"(graph {
  input %x: f32[13]
  %y: f32[13] = HardSwish(%x) @y
  output y = %y
}
)");
}
TEST_F(StepsTest, AnotherConstantIsNoHardSwish) {
  stays(with(kHardSwish, "= [3]", "= [2]"), "fusion.hard_swish");
}
TEST_F(StepsTest, AStepThatOthersReadIsNoHardSwish) {
  stays(with(kHardSwish, "output y", "output b = %b\n  output y"), "fusion.hard_swish");
}
TEST_F(StepsTest, TheGateOfHardSwishMayBeAnOperator) {
  std::string text = R"(graph {
  input %x: f32[13]
  %g: f32[13] = HardSigmoid(%x) {alpha = 0.16666667, beta = 0.5} @g
  %y: f32[13] = Mul(%g, %x) @y
  output y = %y
})";
  becomes(text, "fusion.hard_swish", "HardSwish");
  stays(with(text, "0.16666667", "0.2"), "fusion.hard_swish");
}

const std::string kGelu = R"(graph {
  input %x: f32[13]
  constant %root: f32[] = [1.4142135]
  constant %one: f32[] = [1]
  constant %half: f32[] = [0.5]
  %a: f32[13] = Div(%x, %root) @a
  %b: f32[13] = Erf(%a) @b
  %c: f32[13] = Add(%b, %one) @c
  %d: f32[13] = Mul(%x, %c) @d
  %y: f32[13] = Mul(%d, %half) @y
  output y = %y
})";

TEST_F(StepsTest, GeluIsFound) {
  becomes(kGelu, "fusion.gelu", "Gelu");
}
TEST_F(StepsTest, AnotherRootIsNoGelu) {
  stays(with(kGelu, "1.4142135", "1.41"), "fusion.gelu");
}
TEST_F(StepsTest, GeluByTanhIsFound) {
  std::string text = R"(graph {
  input %x: f32[13]
  constant %three: f32[] = [3]
  constant %little: f32[] = [0.044715]
  constant %root: f32[] = [0.7978846]
  constant %one: f32[] = [1]
  constant %half: f32[] = [0.5]
  %a: f32[13] = Pow(%x, %three) @a
  %b: f32[13] = Mul(%little, %a) @b
  %c: f32[13] = Add(%x, %b) @c
  %d: f32[13] = Mul(%root, %c) @d
  %e: f32[13] = Tanh(%d) @e
  %f: f32[13] = Add(%one, %e) @f
  %g: f32[13] = Mul(%half, %x) @g
  %y: f32[13] = Mul(%g, %f) @y
  output y = %y
})";
  becomes(text, "fusion.gelu", "Gelu");
  stays(with(text, "[3]", "[2]"), "fusion.gelu");
}

const std::string kLayerNorm = R"(graph {
  input %x: f32[2, 3, 4]
  constant %last: i64[1] = [-1]
  constant %two: f32[] = [2]
  constant %epsilon: f32[] = [1e-5]
  constant %scale: f32[4] = [1, 2, 0.5, -1]
  constant %bias: f32[4] = [0, 1, -1, 0.5]
  %m: f32[2, 3, 1] = ReduceMean(%x, %last) @m
  %d: f32[2, 3, 4] = Sub(%x, %m) @d
  %p: f32[2, 3, 4] = Pow(%d, %two) @p
  %v: f32[2, 3, 1] = ReduceMean(%p, %last) @v
  %e: f32[2, 3, 1] = Add(%v, %epsilon) @e
  %s: f32[2, 3, 1] = Sqrt(%e) @s
  %n: f32[2, 3, 4] = Div(%d, %s) @n
  %w: f32[2, 3, 4] = Mul(%n, %scale) @w
  %y: f32[2, 3, 4] = Add(%w, %bias) @y
  output y = %y
})";

TEST_F(StepsTest, LayerNormalizationIsFound) {
  becomes(kLayerNorm, "fusion.layer_norm", "LayerNormalization");
}
TEST_F(StepsTest, LayerNormalizationMayMultiplyToSquare) {
  becomes(with(kLayerNorm, "Pow(%d, %two)", "Mul(%d, %d)"), "fusion.layer_norm",
          "LayerNormalization");
}
TEST_F(StepsTest, LayerNormalizationIsNotAcrossOtherAxes) {
  std::string text = with(kLayerNorm, "%last: i64[1] = [-1]", "%last: i64[1] = [1]");
  while (text.find("f32[2, 3, 1]") != text.npos)
    text = with(text, "f32[2, 3, 1]", "f32[2, 1, 4]");
  stays(text, "fusion.layer_norm");
}
TEST_F(StepsTest, LayerNormalizationReadsNoCube) {
  stays(with(kLayerNorm, "%two: f32[] = [2]", "%two: f32[] = [3]"), "fusion.layer_norm");
}

const std::string kRmsNorm = R"(graph {
  input %x: f32[2, 3, 4]
  constant %last: i64[1] = [-1]
  constant %two: f32[] = [2]
  constant %epsilon: f32[] = [1e-3]
  constant %scale: f32[4] = [1, 2, 0.5, -1]
  %p: f32[2, 3, 4] = Pow(%x, %two) @p
  %m: f32[2, 3, 1] = ReduceMean(%p, %last) @m
  %e: f32[2, 3, 1] = Add(%m, %epsilon) @e
  %s: f32[2, 3, 1] = Sqrt(%e) @s
  %n: f32[2, 3, 4] = Div(%x, %s) @n
  %y: f32[2, 3, 4] = Mul(%n, %scale) @y
  output y = %y
})";

TEST_F(StepsTest, RmsNormalizationIsFound) {
  becomes(kRmsNorm, "fusion.rms_norm", "RMSNormalization");
  becomes(with(kRmsNorm, "Pow(%x, %two)", "Mul(%x, %x)"), "fusion.rms_norm", "RMSNormalization");
}
TEST_F(StepsTest, RmsNormalizationMayMultiplyByTheReciprocal) {
  std::string text = with(kRmsNorm, "%n: f32[2, 3, 4] = Div(%x, %s) @n",
                          "%r: f32[2, 3, 1] = Reciprocal(%s) @r\n"
                          "  %n: f32[2, 3, 4] = Mul(%x, %r) @n");
  becomes(text, "fusion.rms_norm", "RMSNormalization");
}
TEST_F(StepsTest, RmsNormalizationDividesWhatItSquares) {
  std::string text =
      with(kRmsNorm, "input %x: f32[2, 3, 4]", "input %x: f32[2, 3, 4]\n  input %z: f32[2, 3, 4]");
  stays(with(text, "Div(%x, %s)", "Div(%z, %s)"), "fusion.rms_norm");
  stays(with(kRmsNorm, "%scale: f32[4] = [1, 2, 0.5, -1]", "%scale: f32[1] = [2]"),
        "fusion.rms_norm");
}

const std::string kGroupNorm = R"(graph {
  input %x: f32[2, 6, 3, 2]
  constant %grouped: i64[3] = [0, 3, -1]
  constant %ones: f32[3] = [1, 1, 1]
  constant %zeros: f32[3] = [0, 0, 0]
  constant %whole: i64[4] = [2, 6, 3, 2]
  constant %scale: f32[6, 1, 1] = [1, 2, 0.5, -1, 3, 0]
  constant %bias: f32[6, 1, 1] = [0, 1, -1, 2, 0.5, 0]
  %g: f32[2, 3, 12] = Reshape(%x, %grouped) @g
  %n: f32[2, 3, 12] = InstanceNormalization(%g, %ones, %zeros) {epsilon = 1e-3} @n
  %r: f32[2, 6, 3, 2] = Reshape(%n, %whole) @r
  %m: f32[2, 6, 3, 2] = Mul(%r, %scale) @m
  %y: f32[2, 6, 3, 2] = Add(%m, %bias) @y
  output y = %y
})";

TEST_F(StepsTest, GroupNormalizationIsFound) {
  becomes(kGroupNorm, "fusion.group_norm", "GroupNormalization");
}
TEST_F(StepsTest, GroupNormalizationHasScalesOfChannelsAlone) {
  std::string text = with(kGroupNorm, "%scale: f32[6, 1, 1] = [1, 2, 0.5, -1, 3, 0]",
                          "%scale: f32[3, 2] = [1, 2, 0.5, -1, 3, 0]");
  stays(text, "fusion.group_norm");
  stays(with(kGroupNorm, "%ones: f32[3] = [1, 1, 1]", "%ones: f32[3] = [1, 2, 1]"),
        "fusion.group_norm");
}
TEST_F(StepsTest, GroupNormalizationGivesTheShapeThatItTook) {
  std::string text = kGroupNorm;
  for (const char* line : {"%r: f32", "%m: f32", "%y: f32"})
    text = with(text, std::string(line) + "[2, 6, 3, 2]", std::string(line) + "[2, 6, 2, 3]");
  text = with(text, "constant %whole: i64[4] = [2, 6, 3, 2]",
              "constant %whole: i64[4] = [2, 6, 2, 3]");
  stays(text, "fusion.group_norm");
}

const std::string kAttention = R"(graph {
  input %q: f32[2, 3, 4, 5]
  input %k: f32[2, 3, 6, 5]
  input %v: f32[2, 3, 6, 2]
  input %mask: f32[2, 1, 4, 6]
  constant %f: f32[] = [0.25]
  %t: f32[2, 3, 5, 6] = Transpose(%k) {perm = ints [0, 1, 3, 2]} @t
  %a: f32[2, 3, 4, 6] = MatMul(%q, %t) @a
  %b: f32[2, 3, 4, 6] = Mul(%a, %f) @b
  %c: f32[2, 3, 4, 6] = Add(%b, %mask) @c
  %p: f32[2, 3, 4, 6] = Softmax(%c) {axis = -1} @p
  %y: f32[2, 3, 4, 2] = MatMul(%p, %v) @y
  output y = %y
})";

TEST_F(StepsTest, AttentionIsFound) {
  becomes(kAttention, "fusion.attention", "Attention");
  becomes(with(kAttention, "Mul(%a, %f)", "Div(%a, %f)"), "fusion.attention", "Attention");
}
TEST_F(StepsTest, AttentionTakesItsSoftmaxOverTheKeys) {
  stays(with(kAttention, "{axis = -1}", "{axis = 2}"), "fusion.attention");
  stays(with(kAttention, "output y", "output p = %p\n  output y"), "fusion.attention");
}
TEST_F(StepsTest, AMaskThatIsRepeatedOverTheKeysIsNoMaskOfAttention) {
  stays(with(kAttention, "%mask: f32[2, 1, 4, 6]", "%mask: f32[2, 1, 4, 1]"), "fusion.attention");
}

TEST_F(StepsTest, SwishIsFoundUnlessItsSigmoidIsRead) {
  std::string text = R"(graph {
  input %x: f32[13]
  %g: f32[13] = Sigmoid(%x) @g
  %y: f32[13] = Mul(%x, %g) @y
  output y = %y
})";
  becomes(text, "fusion.swish", "Swish");
  stays(with(text, "output y", "output g = %g\n  output y"), "fusion.swish");
}

}  // namespace
}  // namespace tenon::test
