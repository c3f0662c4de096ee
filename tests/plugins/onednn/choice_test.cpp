// SPDX-License-Identifier: Apache-2.0
// Each step says which implementation of its operator it belongs to and why those in front of it in
// the list refused; what refused leaves nothing behind.

#include "implementations/choice.hpp"

#include <gtest/gtest.h>

#include "cpu.hpp"
#include "executable.hpp"
#include "graph_builder.hpp"

namespace tenon::onednn::test {
namespace {

std::vector<std::string> who_refused(const Choice& choice) {
  std::vector<std::string> names;
  for (const Refusal& refusal : choice.refusals)
    names.push_back(refusal.implementation);
  return names;
}

std::string why(const Choice& choice, const std::string& implementation) {
  for (const Refusal& refusal : choice.refusals)
    if (refusal.implementation == implementation) return refusal.why;
  return "";
}

// Of the last step of a node of this operator.
Choice choice_of(const Executable& exe, const std::string& op) {
  Choice found;
  for (const Step& step : exe.plan().steps)
    if (step.op == op && step.choice != nullptr) found = *step.choice;
  return found;
}

TEST(Choice, NamesAllThatRefuseAndWhy) {
  GraphBuilder b(3);
  const int x = b.input("x", {1, 64, 16, 16});
  b.output(b.relu(b.conv(x, 64, 5, 1)));
  b.graph.finish();
  WeightStore store;

  const Executable exe(b.graph, {.threads = 1, .without = {"bf16x6"}}, store);

  const Choice choice = choice_of(exe, "Conv");
  EXPECT_EQ(choice.implementation, "onednn + epilogue");
  EXPECT_EQ(
      who_refused(choice),
      (std::vector<std::string>{"binary", "winograd", "sparse", "int8 depthwise", "float depthwise",
                                "filter", "computed filter", "amx planes", "amx windows", "amx",
                                "bf16x6", "int8 gemm", "onednn + epilogue, a column as a row"}));
  EXPECT_EQ(why(choice, "winograd"), "no window of 3x3 with stride 1 over one group");
  EXPECT_EQ(why(choice, "int8 gemm"), "the operands are not both quantized to 8 bits");
  for (const Refusal& refusal : choice.refusals)
    EXPECT_NE(refusal.why, "") << refusal.implementation;
}

struct AnySite {};
Offer offer_nothing(const AnySite& /*site*/) {
  return refused("for a test");
}

TEST(Choice, EachNameOfAListMustBeKnown) {
  constexpr Implementation<AnySite> kKnown[] = {{"winograd", offer_nothing},
                                                {"filter", offer_nothing}};
  constexpr Implementation<AnySite> kNew[] = {{"winograd", offer_nothing},
                                              {"a new one", offer_nothing}};

  EXPECT_NO_THROW(check_listed<AnySite>(kKnown));
  EXPECT_THROW(check_listed<AnySite>(kNew), CompileError);
}

TEST(Choice, FollowsWhatIsAskedFor) {
  GraphBuilder b(3);
  const int x = b.input("x", {1, 64, 40, 40});
  b.output(b.conv(x, 64, 3, 1));
  b.graph.finish();
  WeightStore store;

  const Executable exe(b.graph, {.winograd = Use::kAll, .threads = 1}, store);

  const Executable plain(b.graph, {.winograd = Use::kOff, .threads = 1}, store);

  EXPECT_EQ(why(choice_of(plain, "Conv"), "winograd"), "winograd=off");
  const Choice choice = choice_of(exe, "Conv");
  if (why(choice, "winograd") == "not fast on this CPU") return;
  EXPECT_EQ(choice.implementation, "winograd");
  EXPECT_EQ(who_refused(choice), std::vector<std::string>{"binary"});
}

// oneDNN makes no bytes of floats, so the form that takes the sum and the rounding along refuses;
// the sum's other operand, which that form would read in another layout, is not brought there.
TEST(Choice, LeavesNothingOfAFormThatRefused) {
  GraphBuilder b(3);
  const int x = b.input("x", {64, 32});
  const int t = b.input("t", {48, 64});
  const int r = b.node("Transpose", {t}, {64, 48}, {{"perm", Dims{1, 0}}});
  const int product = b.node("MatMul", {x, b.random_constant({32, 48}, 0.5F)}, {64, 48});
  const int sum = b.add(product, r);
  const int scale = b.constant({}, {0.1F});
  const int zero = b.constant_bytes(ElementType::kU8, {}, {128});
  b.output(b.node("QuantizeLinear", {sum, scale, zero}, {64, 48}, {}, {}, ElementType::kU8));
  b.graph.finish();
  WeightStore store;

  const Executable exe(b.graph, {.threads = 1, .without = {"f32 gemm"}}, store);

  const Choice choice = choice_of(exe, "MatMul");
  EXPECT_EQ(choice.implementation, "onednn");
  EXPECT_EQ(why(choice, "onednn + epilogue"), "oneDNN has no kernel for it");
  EXPECT_EQ(exe.plan().n_reorders, 0);
  EXPECT_EQ(exe.plan().steps.size(), 2U);
}

// One kernel and one packed form for all numbers of rows, with the bias and what follows; products
// of two computed operands stay oneDNN's.
TEST(Choice, MultipliesFloatsByKnownWeightsInItsOwnKernel) {
  if (best_level() < kernels::Level::kAvx2) GTEST_SKIP() << "no fused multiply-add on this CPU";
  WeightStore store;
  std::vector<float> weights(32 * 48, 0.25F);
  std::vector<std::string> found;
  for (int64_t rows : {1, 7, 64}) {
    GraphBuilder b(3);
    const int x = b.input("x", {rows, 32});
    const int product = b.node("MatMul", {x, b.constant({32, 48}, weights)}, {rows, 48});
    b.output(b.relu(b.add(product, b.constant({48}, std::vector<float>(48, 1.0F)))));
    b.graph.finish();
    const Executable exe(b.graph, {.threads = 1}, store);
    found.push_back(choice_of(exe, "MatMul").implementation);
    EXPECT_EQ(exe.plan().steps.size(), 1U);
    EXPECT_EQ(exe.plan().steps[0].kernel, std::string("tenon:float_product"));
  }
  EXPECT_EQ(found, std::vector<std::string>(3, "f32 gemm"));

  GraphBuilder b(3);
  const int x = b.input("x", {8, 32}), y = b.input("y", {32, 16});
  b.output(b.node("MatMul", {x, y}, {8, 16}));
  b.graph.finish();
  const Executable exe(b.graph, {.threads = 1}, store);
  EXPECT_EQ(why(choice_of(exe, "MatMul"), "f32 gemm"), "the weights are computed");
}

// The nearest of quantized values is one of them; a linear mean is not.
TEST(Choice, ResizesQuantizedValuesAsTheyAreStored) {
  for (const char* mode : {"nearest", "linear"}) {
    GraphBuilder b(3, true);
    const int x = b.stored(b.input("x", {2, 16, 6, 5}), 0.02F, 128);
    const int factors = b.constant({4}, {1, 1, 2, 2});
    const bool is_nearest = mode == std::string("nearest");
    const int resized = b.node(
        "Resize", {x, kNone, factors}, {2, 16, 12, 10},
        {{"mode", std::string(mode)},
         {"coordinate_transformation_mode", std::string(is_nearest ? "asymmetric" : "half_pixel")},
         {"nearest_mode", std::string("floor")}});
    b.output(b.conv(b.stored(resized, 0.02F, 128), 8, 1, 1));
    b.graph.finish();
    WeightStore store;

    const Executable exe(b.graph, {.threads = 1}, store);

    EXPECT_EQ(choice_of(exe, "Resize").implementation, "onednn");
    double bytes = 0;
    for (const Step& step : exe.plan().steps)
      if (step.op == "Resize") bytes += step.bytes;
    // A byte of each, read and written; the source becomes channels-last before that.
    constexpr double kSource = 2 * 16 * 6 * 5, kOfBytes = kSource + 2 * 16 * 12 * 10;
    if (is_nearest) {
      EXPECT_EQ(bytes, 2 * kSource + kOfBytes);
    } else {
      EXPECT_GE(bytes, 4 * kOfBytes);
    }
  }
}

TEST(Choice, TransposesConvolutionsOfQuantizedValuesInInt8) {
  for (int64_t group : {1, 2}) {
    GraphBuilder b(3, true);
    const int x = b.stored(b.input("x", {1, 32, 8, 8}), 0.02F, 128);
    const int weights = b.weights({32, 16 / group, 3, 3}, 1, 0.1F);
    const int y = b.node("ConvTranspose", {x, weights}, {1, 16, 10, 10}, {{"group", group}});
    b.output(b.stored(y, 0.05F, 128));
    b.graph.finish();
    WeightStore store;

    const Executable exe(b.graph, {.threads = 1}, store);

    const Choice choice = choice_of(exe, "ConvTranspose");
    if (why(choice, "int8") == "oneDNN's int8 sums are not exact") continue;  // no VNNI
    EXPECT_EQ(choice.implementation.rfind(group == 1 ? "int8" : "onednn", 0), 0)
        << choice.implementation;
    if (group == 2) {
      EXPECT_EQ(why(choice, "int8"), "several groups");
    }
  }
}

}  // namespace
}  // namespace tenon::onednn::test
