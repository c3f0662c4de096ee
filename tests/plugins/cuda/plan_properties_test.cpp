// SPDX-License-Identifier: Apache-2.0
// The properties of plans, on plans with one mistake each; and where groups and epilogues end.

#include "plan_properties.hpp"

#include "plan_fixture.hpp"

namespace tenon::cuda {
namespace {

using test::broken_properties;
using test::Plans;

class Mistakes : public Plans {
 protected:
  void SetUp() override {
    Plans::SetUp();
    plan_ = plan_of(R"(graph {
  input %x: f32[64, 64]
  input %w: f32[64, 64]
  input %m: f32[64, 64]
  %s: f32[64, 64] = Softmax(%x) @first
  %t: f32[64, 64] = MatMul(%s, %w) @product
  %u: f32[64, 64] = Softmax(%t) @second
  %y: f32[64, 64] = Sub(%u, %s) @last
  output y = %y
  output next = %x
  state %m -> %x
}
)");
    ASSERT_EQ(broken_properties(plan_), std::vector<std::string>{});
  }
  Buffer& named(std::string_view name) {
    for (Buffer& buffer : plan_.buffers)
      if (buffer.name == name) return buffer;
    ADD_FAILURE() << "no buffer " << name;
    return plan_.buffers[0];
  }
  Step& step(std::string_view name) {
    for (Step& one : plan_.steps)
      if (one.name == name) return one;
    ADD_FAILURE() << "no step " << name;
    return plan_.steps[0];
  }
  void expect(const std::string& sentence) {
    std::vector<std::string> found = broken_properties(plan_);
    EXPECT_NE(std::find(found.begin(), found.end(), sentence), found.end())
        << testing::PrintToString(found);
  }

  Plan plan_;
};

TEST_F(Mistakes, TwoValuesInOnePlace) {
  named("t").offset = named("s").offset;
  expect("s and t lie in one place");
}

TEST_F(Mistakes, AnOffsetThatIsNotAligned) {
  named("t").offset += 16;
  expect("t is not aligned to 256 bytes");
}

TEST_F(Mistakes, AnArenaThatIsTooSmall) {
  plan_.arena_bytes -= 256;
  EXPECT_FALSE(broken_properties(plan_).empty());
}

TEST_F(Mistakes, AnotherPeak) {
  plan_.peak_step = "first";
  EXPECT_FALSE(broken_properties(plan_).empty());
}

TEST_F(Mistakes, AnOperandThatAStepDoesNotName) {
  step("product").reads.pop_back();
  expect("step product: its operands are not what it reads and writes");
}

TEST_F(Mistakes, ProductsThatWriteWhatTheyShouldRead) {
  std::swap(step("product").reads, step("product").writes);
  expect("step product: it does not say which buffer it writes");
}

TEST_F(Mistakes, StepsInAnotherOrder) {
  std::swap(step("product"), step("second"));
  expect("step second: it reads t before that is written");
}

TEST_F(Mistakes, AnAddressBehindTheArguments) {
  std::get<Launch>(step("first").work).patches[0].at = 4096;
  expect("step first: an address at byte 4096 of its arguments");
}

TEST_F(Mistakes, AStateThatIsReadAfterItWasReplaced) {
  std::swap(plan_.steps.front(), plan_.steps.back());  // the copy of the state
  Step& first = plan_.steps.back();
  int state = static_cast<int>(&named("m") - plan_.buffers.data());
  first.reads = {state};
  std::get<Launch>(first.work).patches[0].buffer = state;
  expect("step first: it reads state m after its new value is there");
}

TEST_F(Mistakes, AnOutputThatNobodyMakes) {
  plan_.steps.erase(plan_.steps.end() - 2);
  expect("output y is made by 0 buffers");
}

// Groups as the backend limits them: by nodes, and by the inputs that fit a kernel's arguments.
TEST_F(Plans, EndGroupsAt64Nodes) {
  std::string text = "graph {\n  input %x: f32[8]\n";
  std::string last = "%x";
  for (int i = 0; i < 100; ++i) {
    text += cat("  %s", i, ": f32[8] = Sin(", last, ") @n", i, "\n");
    last = cat("%s", i);
  }
  Plan plan = plan_of(text + "  output y = " + last + "\n}\n");

  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].flops, 8 * 36);
  EXPECT_EQ(plan.steps[1].flops, 8 * 64);
}

TEST_F(Plans, GiveNoKernelMoreInputsThanItsArgumentsHold) {
  std::string inputs, nodes, last = "%x0";
  for (int i = 0; i < 60; ++i)
    inputs += cat("  input %x", i, ": f32[2, 1, 3, 1, 2, 1, 2, 2]\n");
  for (int i = 1; i < 60; ++i) {
    nodes +=
        cat("  %s", i, ": f32[2, 1, 3, 1, 2, 1, 2, 2] = Add(", last, ", %x", i, ") @n", i, "\n");
    last = cat("%s", i);
  }
  Plan plan = plan_of("graph {\n" + inputs + nodes + "  output y = " + last + "\n}\n");

  size_t most = 0, n_nodes = 0;
  for (const Step& step : plan.steps) {
    most = std::max(most, step.reads.size());
    n_nodes += static_cast<size_t>(step.flops) / 48;
  }
  EXPECT_GT(plan.steps.size(), 1u);
  EXPECT_LE(most, (512u - 2 - 8) / (1 + 8));
  EXPECT_EQ(n_nodes, 59u);
}

TEST_F(Plans, LeaveANodeOutOfTwoGroups) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[6, 2]
  %s: f32[6, 2] = Exp(%x) @exp
  %a: f32[6, 2] = Neg(%s) @neg
  %b: f32[6, 2] = Sin(%s) @sin
  %r: f32[1, 1] = ReduceSum(%a) @sum
  %y: f32[6, 2] = Mul(%b, %r) @mul
  output y = %y
}
)");
  std::vector<std::string> names;
  for (const Step& step : plan.steps)
    names.push_back(step.name);
  // exp is read by the groups of neg and mul, so it is one of its own.
  EXPECT_EQ(names, (std::vector<std::string>{"exp", "neg", "sum", "mul"}));
}

// What an epilogue adds must be there before the product runs, and nobody else may want the sum.
TEST_F(Plans, EndEpiloguesWhereTheyMust) {
  auto product_with = [this](const char* lines) {
    Plan plan = plan_of(cat("graph {\n  input %x: f32[4, 4]\n  input %w: f32[4, 4]\n",
                            "  input %b: f32[4]\n  %h: f32[4, 4] = MatMul(%x, %w) @matmul\n", lines,
                            "}\n"));
    for (const Step& step : plan.steps)
      if (const Product* product = std::get_if<Product>(&step.work)) return *product;
    ADD_FAILURE() << "no product";
    return Product();
  };
  Product later = product_with(R"(  %c: f32[4] = Exp(%b) @later
  %y: f32[4, 4] = Add(%h, %c) @add
  output y = %y
)");
  EXPECT_LT(later.bias, 0);

  Product read_twice = product_with(R"(  %s: f32[4, 4] = Add(%h, %b) @add
  %y: f32[4, 4] = Relu(%s) @relu
  output s = %s
  output y = %y
)");
  EXPECT_GE(read_twice.bias, 0);
  EXPECT_EQ(read_twice.activation, Activation::kIdentity);

  Product behind_activation = product_with(R"(  %r: f32[4, 4] = Relu(%h) @relu
  %y: f32[4, 4] = Add(%r, %b) @add
  output y = %y
)");
  EXPECT_EQ(behind_activation.activation, Activation::kRelu);
  EXPECT_LT(behind_activation.bias, 0);

  Product two_biases = product_with(R"(  %s: f32[4, 4] = Add(%b, %h) @add
  %y: f32[4, 4] = Add(%s, %b) @again
  output y = %y
)");
  EXPECT_GE(two_biases.bias, 0);
  EXPECT_LT(two_biases.c, 0);

  Product sum_of_itself = product_with(R"(  %y: f32[4, 4] = Add(%h, %h) @add
  output y = %y
)");
  EXPECT_LT(sum_of_itself.c, 0);
}

}  // namespace
}  // namespace tenon::cuda
