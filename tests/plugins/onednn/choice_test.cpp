// SPDX-License-Identifier: Apache-2.0
// Each step says which implementation of its operator it belongs to and why those in front of it in
// the list refused; what refused leaves nothing behind.

#include <gtest/gtest.h>

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

  const Executable exe(b.graph, {.threads = 1}, store);

  const Choice choice = choice_of(exe, "Conv");
  EXPECT_EQ(choice.implementation, "onednn + epilogue");
  EXPECT_EQ(who_refused(choice),
            (std::vector<std::string>{"binary", "winograd", "sparse", "int8 depthwise", "filter",
                                      "amx planes", "amx windows", "amx", "int8 gemm",
                                      "onednn + epilogue, a column as a row"}));
  EXPECT_EQ(why(choice, "winograd"), "no window of 3x3 with stride 1 over one group");
  EXPECT_EQ(why(choice, "int8 gemm"), "the operands are not both quantized to 8 bits");
  for (const Refusal& refusal : choice.refusals)
    EXPECT_NE(refusal.why, "") << refusal.implementation;
}

TEST(Choice, FollowsWhatIsAskedFor) {
  GraphBuilder b(3);
  const int x = b.input("x", {1, 64, 40, 40});
  b.output(b.conv(x, 64, 3, 1));
  b.graph.finish();
  WeightStore store;

  const Executable exe(b.graph, {.winograd = WinogradUse::kAll, .threads = 1}, store);

  const Executable plain(b.graph, {.winograd = WinogradUse::kOff, .threads = 1}, store);

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

  const Executable exe(b.graph, {.threads = 1}, store);

  const Choice choice = choice_of(exe, "MatMul");
  EXPECT_EQ(choice.implementation, "onednn");
  EXPECT_EQ(why(choice, "onednn + epilogue"), "oneDNN has no kernel for it");
  EXPECT_EQ(exe.plan().n_reorders, 0);
  EXPECT_EQ(exe.plan().steps.size(), 2U);
}

}  // namespace
}  // namespace tenon::onednn::test
