// SPDX-License-Identifier: Apache-2.0
// Results at the edges of what an operator allows, written out by hand or as NumPy gives them:
// random samples reach them seldom, and a backend that has the same mistake would agree.

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

class Edges : public PluginTest {
 protected:
  // What a node gives, whose text is the right side of an assignment, on the backend "reference".
  std::vector<float> run(std::string_view constants, std::string_view type, std::string_view node) {
    EXPECT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    std::string text =
        cat("graph {\n", constants, "  %y: ", type, " = ", node, " @n\n  output y = %y\n}\n");
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
    if (!raw) return {};
    OwnedGraph owned = OwnedGraph::take(raw);
    tn_plan* plan = nullptr;
    EXPECT_EQ(
        text_of(Status(tenon_compile(session_, raw, str(R"({"backend": "reference"})"), &plan))),
        "");
    if (!plan) return {};
    Collected results(ctx_);
    EXPECT_EQ(text_of(Status(tenon_run(plan, nullptr, 0, &results.raw, nullptr))), "");
    services.eval->release(plan);
    return results.tensors.empty() ? std::vector<float>() : results.numbers<float>(0);
  }
  // What compiling or running says of a graph that gives %y, or nothing.
  std::string refusal(std::string_view lines, const std::vector<Tensor>& inputs) {
    EXPECT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    std::string text = cat("graph {\n", lines, "  output y = %y\n}\n");
    tn_graph* raw = nullptr;
    std::string parsed = text_of(Status(services.graph->parse(ctx_, str(text), &raw)));
    if (!raw) return parsed;
    OwnedGraph owned = OwnedGraph::take(raw);
    tn_plan* plan = nullptr;
    std::string made =
        text_of(Status(tenon_compile(session_, raw, str(R"({"backend": "reference"})"), &plan)));
    if (!plan) return made;
    std::vector<DLTensor> views;
    std::vector<const DLTensor*> in;
    for (const Tensor& input : inputs)
      views.push_back(input.dl());
    for (const DLTensor& one : views)
      in.push_back(&one);
    Collected results(ctx_);
    std::string said =
        text_of(Status(tenon_run(plan, in.data(), in.size(), &results.raw, nullptr)));
    services.eval->release(plan);
    return said;
  }
  std::vector<float> padded(std::string_view pads, std::string_view size, std::string_view mode) {
    std::string constants =
        cat("  constant %x: f32[4] = [0, 1, 2, 3]\n  constant %p: i64[2] = ", pads, "\n");
    return run(constants, cat("f32[", size, "]"), cat("Pad(%x, %p) {mode = \"", mode, "\"}"));
  }
};

TEST_F(Edges, AConstantOfAnyShapeIsOneNumber) {
  for (const char* n : {"0", "1", "3", "70001"})
    EXPECT_EQ(run(cat("  constant %s: i64[1] = [", n, "]\n"), cat("f32[", n, "]"),
                  "ConstantOfShape(%s) {value = tensor f32[1] = [2.5]}"),
              std::vector<float>(static_cast<size_t>(std::stoi(n)), 2.5F));
}

// numpy.pad of x[1:], and of x[:-1].
TEST_F(Edges, PadRepeatsWhatNegativePadsLeave) {
  EXPECT_EQ(padded("[-1, 4]", "7", "wrap"), (std::vector<float>{1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(padded("[-1, 4]", "7", "reflect"), (std::vector<float>{1, 2, 3, 2, 1, 2, 3}));
  EXPECT_EQ(padded("[-1, 2]", "5", "edge"), (std::vector<float>{1, 2, 3, 3, 3}));
  EXPECT_EQ(padded("[3, -1]", "6", "wrap"), (std::vector<float>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(padded("[-1, 1]", "4", "constant"), (std::vector<float>{1, 2, 3, 0}));
}

// numpy.hanning(1), numpy.hamming(1), numpy.blackman(1).
// PyTorch's values of grid_sample with mode="bicubic", padding_mode="border", align_corners=True,
// at pixels 3.25 and 5 of [[0, 1, 2, 3]]: the taps stop at the border, their weights do not.
TEST_F(Edges, CubicSamplesBeyondTheBorderAreWeighedWhereTheyLie) {
  const std::vector<float> got =
      run("  constant %x: f32[1, 1, 4] = [0, 1, 2, 3]\n"
          "  constant %g: f32[1, 2, 1] = [1.1666666, 2.3333333]\n",
          "f32[1, 1, 2]",
          "GridSample(%x, %g) {mode = \"cubic\", padding_mode = \"border\", align_corners = 1}");
  ASSERT_EQ(got.size(), 2u);
  EXPECT_NEAR(got[0], 3.10546875, 1e-5);
  EXPECT_NEAR(got[1], 3, 1e-5);
}

// 10 times 2.3f is 23 as a float, which ONNX's inference and ONNX Runtime take, and 22.9999995 in
// double.
TEST_F(Edges, ResizedSizesAreProductsOfFloats) {
  const std::vector<float> got =
      run("  constant %x: f32[1, 1, 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
          "  constant %s: f32[3] = [1, 1, 2.3]\n  constant %none: f32[0] = []\n",
          "f32[1, 1, 23]", "Resize(%x, %none, %s)");
  EXPECT_EQ(got.size(), 23u);
}

TEST_F(Edges, WindowOfOneEntryIsOne) {
  for (std::string_view type : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    EXPECT_EQ(run("  constant %n: i64[] = [1]\n", "f32[1]", cat(type, "(%n) {periodic = 0}")),
              std::vector<float>{1});
}

// A sample without frames: no way to say a label (PyTorch's ctc_loss), the only way to say none.
TEST_F(Edges, CtcOfNoFramesIsImpossibleOrCertain) {
  std::string constants =
      "  constant %x: f32[2, 1, 2] = [1, 2, 3, 4]\n  constant %t: i64[2, 1] = [1, -1]\n"
      "  constant %n: i64[2] = [0, 0]\n";
  EXPECT_EQ(run(constants, "f32[2]", "tenon:CtcLoss(%x, %t, %n)"),
            (std::vector<float>{HUGE_VALF, 0}));
  EXPECT_EQ(run(constants, "f32[2, 1, 2]", "tenon:CtcLossGrad(%x, %t, %n)"),
            (std::vector<float>{0, 0, 0, 0}));
}

// Sizes and numbers that would lead outside of the matrix are refused when they come at run time.
TEST_F(Edges, MelWeightsOfSizesThatCannotBeAreRefused) {
  auto refused = [&](int64_t length, float upper) {
    auto size = Tensor::of<int64_t>(ctx_, TN_I64, {}, std::vector{length});
    auto edge = Tensor::of<float>(ctx_, TN_F32, {}, std::vector{upper});
    return refusal(
        "  input %x: i64[]\n  input %e: f32[]\n  constant %b: i64[] = [3]\n"
        "  constant %r: i64[] = [8000]\n  constant %l: f32[] = [0]\n"
        "  %y: f32[?, ?] = MelWeightMatrix(%b, %x, %r, %l, %e) @n\n",
        {*size, *edge});
  };
  EXPECT_NE(refused(std::numeric_limits<int64_t>::max(), 3500).find("dft_length"),
            std::string::npos);
  EXPECT_NE(refused(16, HUGE_VALF).find("upper_edge_hertz"), std::string::npos);
  EXPECT_EQ(refused(16, 3500), "");
}

TEST_F(Edges, AGridNamesAsManyAxesAsTheImageHas) {
  auto refused = [&](std::string_view grid) {
    return refusal(cat("  input %x: f32[1, 1, 4, 4]\n  input %g: f32[", grid,
                       "]\n  %y: f32[?, ?, ?, ?] = GridSample(%x, %g) @n\n"),
                   {});
  };
  EXPECT_NE(refused("1, 2, 2, 3").find("number of s"), std::string::npos);
  EXPECT_EQ(refused("1, 2, 2, 2").find("number of s"), std::string::npos);
}

// Without a sampling_ratio a bin is sampled at each of its pixels: a box of a million of them in
// one bin would take an hour.
TEST_F(Edges, BoxesOfMorePixelsThanCanBeSampledAreRefused) {
  auto refused = [&](float right) {
    const std::vector<int64_t> shape{1, 4};
    auto box = Tensor::of<float>(ctx_, TN_F32, shape, std::vector<float>{0, 0, right, 2});
    return refusal(
        "  constant %x: f32[1, 1, 2, 2] = [1, 2, 3, 4]\n  input %r: f32[1, 4]\n"
        "  constant %b: i64[1] = [0]\n  %y: f32[1, 1, 1, 1] = RoiAlign(%x, %r, %b) @n\n",
        {*box});
  };
  EXPECT_NE(refused(1e6f).find("expected at most 4096 pixels a bin"), std::string::npos);
  EXPECT_EQ(refused(4000), "");
}

TEST_F(Edges, BoxesThatEndBeforeTheyBeginAreZero) {
  for (const char* mode : {"avg", "max"})
    EXPECT_THAT(run("  constant %x: f32[1, 1, 3, 3] = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
                    "  constant %r: f32[2, 4] = [2.5, 2.5, 1, 1, 2.5, 1, 1, 2.5]\n"
                    "  constant %b: i64[2] = [0, 0]\n",
                    "f32[2, 1, 1, 1]", cat("RoiAlign(%x, %r, %b) {mode = \"", mode, "\"}")),
                testing::ElementsAre(0, 0));
}

TEST_F(Edges, PlacesOfWhatIsNotZeroAreFoundInEveryType) {
  for (const char* type : {"f32", "f64", "f16", "bf16", "i8", "u16", "i64", "bool"})
    EXPECT_THAT(run(cat("  constant %c: f32[2, 1, 3] = [0, 1, -0.0, 3, 0, 1]\n  %x: ", type,
                        "[2, 1, 3] = Cast(%c) {to = dtype ", type,
                        "} @c\n  %i: i64[3, 3] = NonZero(%x) @i\n"),
                    "f32[3, 3]", "Cast(%i) {to = dtype f32}"),
                testing::ElementsAre(0, 1, 1, 0, 0, 0, 1, 0, 2))
        << type;
}

// Sizes that a run is given are numbers as any: those that are no shape of the pool's input are
// refused.
TEST_F(Edges, AShapeOfAPoolsInputThatIsNoneIsRefused) {
  auto refused = [&](std::vector<int64_t> sizes) {
    auto shape = Tensor::of<int64_t>(ctx_, TN_I64, std::vector<int64_t>{4}, sizes);
    return refusal(
        "  constant %d: f32[1, 1, 1, 2] = [1, 2]\n  input %s: i64[4]\n  %y: f32[*] = "
        "tenon:AveragePoolGrad(%d, %s) {kernel_shape = ints [2, 2], strides = ints [2, 2]} @n\n",
        {*shape});
  };
  EXPECT_EQ(refused({1, 1, 2, 4}), "");
  for (int64_t wild : {int64_t{-1}, int64_t{1} << 62, std::numeric_limits<int64_t>::min()})
    for (size_t axis = 0; axis < 4; ++axis) {
      std::vector<int64_t> sizes = {1, 1, 2, 4};
      sizes[axis] = wild;
      EXPECT_THAT(refused(sizes), testing::HasSubstr("x: "));
    }
}

TEST_F(Edges, BoxesOfNegativeOutputSizesAreRefused) {
  EXPECT_THAT(
      refusal("  input %x: f32[1, 1, 2, 2]\n  input %r: f32[1, 4]\n  constant %b: i64[1] = [0]"
              "\n  %y: f32[*] = RoiAlign(%x, %r, %b) {output_width = -2} @n\n",
              {}),
      testing::HasSubstr("expected at least 0, got 1, -2"));
}

// Found by mutants under AddressSanitizer and UBSan.
TEST_F(Edges, OutputsThatTheOperatorHasNotAreRefused) {
  EXPECT_THAT(
      refusal("  input %x: f32[2, 1, 3]\n  input %w: f32[1, 4, 3]\n  input %r: f32[1, 4, 4]\n"
              "  %y: f32[2, 1, 1, 4], %h: f32[1, 1, 4], %z: f32[1, 1, 4] = RNN(%x, %w, %r) "
              "{hidden_size = 4} @n\n",
              {}),
      testing::HasSubstr("expected at most 2 outputs, got 3"));
}

// A negative number made Loop read beyond the types of its inputs.
TEST_F(Edges, CapturesThatAreNoInputsAreRefused) {
  for (int wild : {-1, 4}) {
    const std::string lines =
        cat("  input %x: f32[3]\n  constant %m: i64[] = [2]\n"
            "  %y: f32[3] = Loop(%m, _, %x) {captures = ",
            wild,
            ", body = graph {\n    input %i: i64[]\n    input %go: bool[]\n    input %s: f32[3]\n"
            "    output go = %go\n    output s = %s\n  }} @n\n");
    EXPECT_THAT(refusal(lines, {}), testing::HasSubstr("captures: expected a number from 0 to 3"));
  }
}

TEST_F(Edges, SizesThatOverflowAreRefused) {
  const std::string most = std::to_string(std::numeric_limits<int64_t>::max());
  Tensor repeats = *Tensor::of<int64_t>(ctx_, TN_I64, std::vector<int64_t>{1},
                                        std::vector{std::numeric_limits<int64_t>::max()});
  EXPECT_THAT(refusal("  constant %x: f32[3] = [0, 1, 2]\n  input %r: i64[1]\n"
                      "  %y: f32[n] = Tile(%x, %r) @n\n",
                      {repeats}),
              testing::HasSubstr(cat("axis 0 of 3 times ", most)));
}

// Wider than any sequence, a window says nothing.
TEST_F(Edges, WindowsOfAttentionMayBeOfAnyWidth) {
  constexpr std::string_view kNumbers =
      "  constant %q: f32[1, 1, 2, 1] = [1, 2]\n  constant %k: f32[1, 1, 2, 1] = [0, 0]\n"
      "  constant %v: f32[1, 1, 2, 1] = [1, 3]\n";
  for (std::string side : {"left", "right"})
    EXPECT_EQ(run(kNumbers, "f32[1, 1, 2, 1]",
                  cat("Attention(%q, %k, %v) {", side, "_window_size = 9223372036854775807}")),
              (std::vector<float>{2, 2}))
        << side;
}

TEST_F(Edges, LengthsBeyondTheKeysAreRefused) {
  EXPECT_THAT(refusal("  constant %q: f32[1, 1, 2, 1] = [1, 2]\n  constant %n: i64[1] = "
                      "[-9223372036854775808]\n"
                      "  %y: f32[1, 1, 2, 1] = Attention(%q, %q, %q, _, _, _, %n) @n\n",
                      {}),
              testing::HasSubstr("nonpad_kv_seqlen: expected numbers in 0..2"));
}

TEST_F(Edges, AShapeOfAConvolutionsOperandThatIsNoneIsRefused) {
  for (std::string type : {"ConvWeightGrad", "ConvInputGrad"}) {
    for (int64_t wild : {int64_t{-1}, int64_t{1} << 62, std::numeric_limits<int64_t>::min()})
      for (size_t axis = 0; axis < 4; ++axis) {
        std::vector<int64_t> sizes = {1, 1, 2, 2};
        sizes[axis] = wild;
        auto shape = Tensor::of<int64_t>(ctx_, TN_I64, std::vector<int64_t>{4}, sizes);
        EXPECT_NE(refusal(cat("  constant %a: f32[1, 1, 2, 2] = [1, 2, 3, 4]\n  constant %b: "
                              "f32[1, 1, 1, 1] = [1]\n  input %s: i64[4]\n  %y: f32[*] = tenon:",
                              type, "(%a, %b, %s) {group = 2} @n\n"),
                          {*shape}),
                  "")
            << type << " axis " << axis << ": " << wild;
      }
  }
}

// It follows from the graph alone: nothing is run, for which there is no input.
TEST_F(Edges, WindowsWithoutASizeAreRefusedByInference) {
  EXPECT_THAT(refusal("  input %x: f32[1, 1, 4, 4]\n  %y: f32[*] = MaxPool(%x) {kernel_shape = "
                      "ints [0, 0]} @n\n",
                      {}),
              testing::HasSubstr("kernel: expected numbers in 1..2147483647, got 0"));
}

// What no memory holds is an error that says so.
TEST_F(Edges, AWindowThatNoMemoryHoldsIsRefused) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's allocator ends the process";
#endif
  auto size = Tensor::of<int64_t>(ctx_, TN_I64, std::vector<int64_t>{},
                                  std::vector<int64_t>{int64_t{1} << 46});
  for (std::string type : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    EXPECT_THAT(refusal(cat("  input %n: i64[]\n  %y: f32[*] = ", type, "(%n) @n\n"), {*size}),
                testing::HasSubstr("no memory for 281474976710656 bytes"));
}

// In float32 it is 0, -9, -27, 58, 197, 282, 264, 255.
TEST_F(Edges, CubicResizingOfIntegersSaturates) {
  EXPECT_EQ(run("  constant %x: u8[1, 1, 4] = [0, 0, 255, 255]\n"
                "  constant %s: f32[3] = [1, 1, 2]\n  constant %none: f32[0] = []\n"
                "  %r: u8[1, 1, 8] = Resize(%x, %none, %s) {mode = \"cubic\"} @r\n",
                "f32[1, 1, 8]", "Cast(%r) {to = dtype f32}"),
            (std::vector<float>{0, 0, 0, 58, 197, 255, 255, 255}));
}

TEST_F(Edges, ResizeRefusesAPolicyThatItDoesNotKnow) {
  EXPECT_THAT(
      refusal("  input %x: f32[1, 1, 2, 2]\n  constant %n: i64[4] = [1, 1, 4, 6]\n"
              "  %y: f32[*] = Resize(%x, _, _, %n) {keep_aspect_ratio_policy = \"big\"} @n\n",
              {}),
      testing::HasSubstr(
          "keep_aspect_ratio_policy: expected one of stretch, not_larger, not_smaller"));
}

TEST_F(Edges, SplitRefusesAnotherNumberThanItsOutputs) {
  EXPECT_THAT(refusal("  input %x: f32[6]\n  %y: f32[3], %z: f32[3] = Split(%x) {axis = 0, "
                      "num_outputs = 3} @n\n",
                      {}),
              testing::HasSubstr("num_outputs: expected 2, the number of outputs, got 3"));
}

// ONNX's text: without SAME_UPPER the larger half of what an output_shape cuts is cut in front.
TEST_F(Edges, AnOutputShapeOfConvTransposeCutsMoreInFront) {
  constexpr std::string_view kNumbers =
      "  constant %x: f32[1, 1, 2] = [1, 2]\n  constant %w: f32[1, 1, 3] = [1, 10, 100]\n";
  auto cut = [&](std::string_view more) {
    return run(
        kNumbers, "f32[1, 1, 4]",
        cat("ConvTranspose(%x, %w) {output_shape = ints [4], strides = ints [2]", more, "}"));
  };
  EXPECT_EQ(cut(""), (std::vector<float>{10, 102, 20, 200}));
  EXPECT_EQ(cut(", auto_pad = \"SAME_LOWER\""), (std::vector<float>{10, 102, 20, 200}));
  EXPECT_EQ(cut(", auto_pad = \"SAME_UPPER\""), (std::vector<float>{1, 10, 102, 20}));
}

// numpy.matmul of vectors, as MatMul has it.
TEST_F(Edges, IntegerProductsTakeVectors) {
  constexpr std::string_view kNumbers =
      "  constant %v: u8[3] = [1, 2, 3]\n  constant %m: u8[3, 2] = [0, 1, 2, 3, 4, 5]\n"
      "  constant %z: u8[1] = [1]\n";
  auto product = [&](std::string_view type, std::string_view node) {
    return run(cat(kNumbers, "  %p: i32", type, " = ", node, " @p\n"), cat("f32", type),
               "Cast(%p) {to = dtype f32}");
  };
  EXPECT_EQ(product("[2]", "MatMulInteger(%v, %m)"), (std::vector<float>{16, 22}));
  EXPECT_EQ(product("[2]", "MatMulInteger(%v, %m, %z, %z)"), (std::vector<float>{7, 10}));
  EXPECT_EQ(product("[]", "MatMulInteger(%v, %v)"), (std::vector<float>{14}));
}

// numpy.argmax and argmin: the first NaN, or the last one.
TEST_F(Edges, NaNIsWhatArgMaxAndArgMinLookFor) {
  constexpr std::string_view kNumbers = "  constant %x: f32[4] = [3, nan, nan, 1]\n";
  for (std::string type : {"ArgMax", "ArgMin"})
    for (int last : {0, 1})
      EXPECT_EQ(run(cat(kNumbers, "  %i: i64[] = ", type, "(%x) {axis = 0, keepdims = 0, ",
                        "select_last_index = ", last, "} @i\n"),
                    "f32[]", "Cast(%i) {to = dtype f32}"),
                std::vector<float>{static_cast<float>(1 + last)})
          << type;
  EXPECT_EQ(run(kNumbers, "f32[4]", "Hardmax(%x) {axis = 0}"), (std::vector<float>{0, 1, 0, 0}));
}

// A hair above the middle between two floats, and in double the middle itself.
TEST_F(Edges, IntegersAreRoundedOnce) {
  constexpr int64_t kNumber = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  for (std::string type : {"i64", "u64"})
    EXPECT_EQ(run(cat("  constant %x: ", type, "[1] = [", kNumber, "]\n"), "f32[1]",
                  "Cast(%x) {to = dtype f32}"),
              std::vector<float>{static_cast<float>(kNumber)});
}

TEST_F(Edges, RangeTakesATypeToCountIn) {
  EXPECT_EQ(run("  constant %a: f32[] = [0]\n  constant %b: f32[] = [3]\n"
                "  constant %c: f32[] = [1]\n",
                "f32[3]", "Range(%a, %b, %c) {stash_type = dtype f32}"),
            (std::vector<float>{0, 1, 2}));
}

TEST_F(Edges, SumsOfIntegersWrapAround) {
  constexpr std::string_view kNumbers =
      "  constant %x: i64[2] = [9223372036854775807, 2]\n  constant %a: i64[1] = [0]\n";
  EXPECT_EQ(run(cat(kNumbers, "  %s: i64[] = ReduceSum(%x, %a) {keepdims = 0} @s\n"), "f32[]",
                "Cast(%s) {to = dtype f32}"),
            std::vector<float>{-9223372036854775807.0F});
  EXPECT_EQ(run(cat(kNumbers, "  %s: i64[] = ReduceProd(%x, %a) {keepdims = 0} @s\n"), "f32[]",
                "Cast(%s) {to = dtype f32}"),
            std::vector<float>{-2});
}

}  // namespace
}  // namespace tenon::test
