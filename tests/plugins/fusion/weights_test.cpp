// SPDX-License-Identifier: Apache-2.0
// Rules that change weights or the attributes of the operator that has them.
#include <array>
#include <bit>

#include "fusion_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::Pointwise;

std::string with(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

class WeightsTest : public FusionTest {
 protected:
  void becomes(const std::string& text, const std::string& rule, const std::string& type) {
    OwnedGraph graph = parse(text);
    OwnedGraph fused = apply(graph, rule);
    EXPECT_THAT(operators(fused), ElementsAre(type));
    EXPECT_THAT(run(fused), Pointwise(testing::FloatNear(1e-5f), run(graph)));
  }
  void stays(const std::string& text, const std::string& rule) {
    OwnedGraph graph = parse(text);
    EXPECT_EQ(this->text(apply(graph, rule)), this->text(graph));
  }
};

constexpr std::string_view kNorm = R"(
  constant %scale: f32[4] = [2, 0.5, 1, -1]
  constant %shift: f32[4] = [1, -1, 0, 2]
  constant %mean: f32[4] = [0.25, 0.75, 0, 1]
  constant %var: f32[4] = [4, 0.25, 1, 2]
)";

TEST_F(WeightsTest, ANormalizationGoesIntoAGroupedTransposedConvolution) {
  becomes(cat(R"(graph {
  input %x: f32[1, 2, 3, 3]
  constant %w: f32[2, 2, 1, 1] = [1, 2, 3, -1])",
              kNorm, R"(
  %c: f32[1, 4, 3, 3] = ConvTranspose(%x, %w) {group = 2} @conv
  %y: f32[1, 4, 3, 3] = BatchNormalization(%c, %scale, %shift, %mean, %var) @norm
  output y = %y
})"),
          "fusion.conv_batch_norm", "ConvTranspose");
}

std::string gemm_and_norm(std::string_view weight_shape, std::string_view attributes) {
  return cat(R"(graph {
  input %x: f32[3, 2]
  constant %w: f32)",
             weight_shape, R"( = [1, 2, 3, -1, 0.5, 0.25, 2, 1]
  constant %bias: f32[4] = [0.5, -0.5, 1, 2])",
             kNorm, "  %c: f32[3, 4] = Gemm(%x, %w, %bias) {", attributes, R"(} @gemm
  %y: f32[3, 4] = BatchNormalization(%c, %scale, %shift, %mean, %var) @norm
  output y = %y
})");
}

TEST_F(WeightsTest, ANormalizationGoesIntoAGemm) {
  becomes(gemm_and_norm("[2, 4]", "alpha = 0.5, beta = 2.0"), "fusion.conv_batch_norm", "Gemm");
  becomes(gemm_and_norm("[4, 2]", "transB = 1"), "fusion.conv_batch_norm", "Gemm");
}

TEST_F(WeightsTest, ANormalizationInTrainingStays) {
  stays(with(gemm_and_norm("[2, 4]", "beta = 2.0"), "%var) @", "%var) {training_mode = 1} @"),
        "fusion.conv_batch_norm");
}

// [axis]: where the two branches are put together; [tail]: what else there is.
std::string branches_and_norm(std::string_view axis, std::string_view tail) {
  return cat(R"(graph {
  input %x: f32[1, 2, 3, 3]
  constant %w: f32[3, 2, 1, 1] = [1, 2, 3, -1, 0.5, 0.25]
  constant %v: f32[1, 2, 3, 3] = [1, 2, 3, -1, 0.5, 0.25, 2, 1, 4, 0, 1, 2, 3, -1, 0.5, 0.25, 2, 1]
  constant %b: f32[1] = [0.5])",
             kNorm, R"(
  %c: f32[1, 3, 3, 3] = Conv(%x, %w) @first
  %d: f32[1, 1, 3, 3] = Conv(%x, %v, %b) {pads = ints [1, 1, 1, 1]} @second
  %both: f32[1, 4, 3, 3] = Concat(%c, %d) {axis = )",
             axis, R"(} @both
  %y: f32[1, 4, 3, 3] = BatchNormalization(%both, %scale, %shift, %mean, %var) @norm
  output y = %y)",
             tail, "\n}");
}

TEST_F(WeightsTest, ANormalizationGoesIntoAllBranchesOfAConcat) {
  for (std::string_view axis : {"1", "-3"}) {
    OwnedGraph graph = parse(branches_and_norm(axis, ""));
    OwnedGraph fused = apply(graph, "fusion.conv_batch_norm");
    EXPECT_THAT(operators(fused), ElementsAre("Conv", "Conv", "Concat"));
    std::vector<std::string> names;
    for (Node node : fused.view().nodes())
      names.emplace_back(node.name());
    EXPECT_THAT(names, ElementsAre("first", "second", "both"));
    EXPECT_THAT(run(fused), Pointwise(testing::FloatNear(1e-5f), run(graph)));
  }
}

TEST_F(WeightsTest, ANormalizationOfABranchThatOthersReadStays) {
  stays(branches_and_norm("1", "\n  output c = %c"), "fusion.conv_batch_norm");
}

const std::string kScaled = R"(graph {
  input %x: f32[1, 2, 3, 3]
  constant %w: f32[3, 2, 1, 1] = [1, 2, 3, -1, 0.5, 0.25]
  constant %s: f32[3, 1, 1] = [2, 0.5, -1]
  %c: f32[1, 3, 3, 3] = Conv(%x, %w) @conv
  %y: f32[1, 3, 3, 3] = Mul(%s, %c) @scaled
  output y = %y
})";

TEST_F(WeightsTest, AScaleByChannelGoesIntoAConvolution) {
  becomes(kScaled, "fusion.conv_scale", "Conv");
  becomes(with(kScaled, "Mul(%s, %c)", "Sub(%c, %s)"), "fusion.conv_scale", "Conv");
  becomes(with(kScaled, "Mul(%s, %c)", "Div(%c, %s)"), "fusion.conv_scale", "Conv");
}
TEST_F(WeightsTest, AConvolutionKeepsItsName) {
  OwnedGraph fused = apply(parse(kScaled), "fusion.conv_scale");

  EXPECT_EQ(fused.view().node(0).name(), "conv");
  EXPECT_EQ(fused.view().outputs()[0].name(), "y");
}
// As Caffe's networks are written: statistics in one node, scale and shift in others.
TEST_F(WeightsTest, AScaleAndAShiftGoIntoANormalization) {
  const std::string norm = cat(R"(graph {
  input %x: f32[1, 4, 3, 3])",
                               kNorm, R"(
  constant %s: f32[4, 1, 1] = [2, 0.5, -1, 3]
  %n: f32[1, 4, 3, 3] = BatchNormalization(%x, %scale, %shift, %mean, %var) {epsilon = 0.5} @norm
  %y: f32[1, 4, 3, 3] = Mul(%s, %n) @scaled
  output y = %y
})");
  becomes(norm, "fusion.conv_scale", "BatchNormalization");
  becomes(with(norm, "Mul(%s, %n)", "Add(%n, %s)"), "fusion.conv_scale", "BatchNormalization");
  stays(with(norm, "epsilon = 0.5", "training_mode = 1"), "fusion.conv_scale");
  stays(with(norm, "output y = %y", "output y = %y\n  output n = %n"), "fusion.conv_scale");
  stays(with(norm, "f32[4, 1, 1] = [2, 0.5, -1, 3]", "f32[1, 1, 3] = [2, 0.5, -1]"),
        "fusion.conv_scale");
}
TEST_F(WeightsTest, ADifferenceFromAConstantStays) {
  stays(with(kScaled, "Mul(%s, %c)", "Sub(%s, %c)"), "fusion.conv_scale");
}
TEST_F(WeightsTest, AScaleAlongAnotherAxisStays) {
  stays(with(kScaled, "f32[3, 1, 1]", "f32[3, 1]"), "fusion.conv_scale");
}

const std::string kPadded = R"(graph {
  input %x: f32[1, 1, 3, 3]
  constant %w: f32[1, 1, 2, 2] = [1, 2, 3, -1]
  constant %pads: i64[8] = [0, 0, 1, 0, 0, 0, 1, 2]
  %p: f32[1, 1, 5, 5] = Pad(%x, %pads) @pad
  %y: f32[1, 1, 6, 4] = Conv(%p, %w) {pads = ints [1, 0, 1, 0]} @conv
  output y = %y
})";

TEST_F(WeightsTest, APadGoesIntoItsConvolution) {
  becomes(kPadded, "fusion.pad_conv", "Conv");
}
TEST_F(WeightsTest, APadWithOtherThanZerosStays) {
  stays(with(kPadded, "Pad(%x, %pads)", R"(Pad(%x, %pads) {mode = "edge"})"), "fusion.pad_conv");
}
TEST_F(WeightsTest, APaddedImageThatOthersReadStays) {
  stays(with(kPadded, "output y", "output p = %p\n  output y"), "fusion.pad_conv");
}

// float32 as the text form has long data.
std::string hexadecimal(const std::vector<float>& numbers) {
  std::string out = "x'";
  for (float number : numbers) {
    const auto bits = std::bit_cast<std::array<unsigned char, 4>>(number);
    for (unsigned char byte : bits)
      for (int digit : {byte >> 4, byte & 15})
        out += "0123456789abcdef"[digit];
  }
  return out + "'";
}
// Numbers that all differ, [rows, columns], or their transpose.
std::vector<float> numbers(size_t rows, size_t columns, bool is_transposed = false) {
  std::vector<float> out(rows * columns);
  for (size_t i = 0; i < out.size(); ++i)
    out[is_transposed ? i % columns * rows + i / columns : i] = static_cast<float>(i) - 40;
  return out;
}
// A table, read by rows, and `other` behind it as the matrix of a product.
std::string tied(std::string_view other) {
  return cat(R"(graph {
  input %x: f32[5, 12]
  constant %i: i64[2] = [3, 0]
  constant %axes: i64[1] = [0]
  constant %table: f32[24, 12] = )",
             hexadecimal(numbers(24, 12)), "\n", other, R"(
  %rows: f32[2, 12] = Gather(%table, %i) @rows
  %p: f32[5, 24] = MatMul(%x, %w) @product
  %y: f32[2, 24] = MatMul(%rows, %w) @again
  %s: f32[24] = ReduceMean(%p, %axes) {keepdims = 0} @mean
  %z: f32[2, 24] = Add(%y, %s) @z
  output y = %z
})");
}

TEST_F(WeightsTest, ATransposeOfAnotherWeightIsStoredAsOne) {
  OwnedGraph graph =
      parse(tied(cat("  constant %w: f32[12, 24] = ", hexadecimal(numbers(24, 12, true)))));
  OwnedGraph shared = apply(graph, "fusion.ties");

  EXPECT_THAT(operators(shared), testing::Contains("Transpose"));
  EXPECT_EQ(text(shared).find("constant %w"), std::string::npos);
  EXPECT_THAT(run(shared), testing::ElementsAreArray(run(graph)));
  EXPECT_EQ(text(apply(shared, "fusion.ties")), text(shared));
}

TEST_F(WeightsTest, OtherWeightsOfThatShapeStay) {
  std::vector<float> other = numbers(24, 12, true);
  other.back() = -1;
  stays(tied(cat("  constant %w: f32[12, 24] = ", hexadecimal(other))), "fusion.ties");
}

TEST_F(WeightsTest, TheSameWeightTwiceIsStoredOnceAndZerosAreNoTie) {
  auto two = [](const std::vector<float>& weight) {
    const std::string data = hexadecimal(weight);
    return cat(R"(graph {
  input %x: f32[5, 12]
  constant %v: f32[12, 24] = )",
               data, "\n  constant %w: f32[12, 24] = ", data, R"(
  %p: f32[5, 24] = MatMul(%x, %v) @p
  %q: f32[5, 24] = MatMul(%x, %w) @q
  %y: f32[5, 24] = Add(%p, %q) @y
  output y = %y
})");
  };
  OwnedGraph graph = parse(two(numbers(12, 24)));
  OwnedGraph shared = apply(graph, "fusion.ties");

  EXPECT_EQ(text(shared).find("constant %w"), std::string::npos);
  EXPECT_THAT(run(shared), testing::ElementsAreArray(run(graph)));
  stays(two(std::vector<float>(12 * 24)), "fusion.ties");
}

}  // namespace
}  // namespace tenon::test
