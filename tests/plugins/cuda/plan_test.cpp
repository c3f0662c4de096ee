// SPDX-License-Identifier: Apache-2.0
// What becomes of a graph: groups, epilogues, copies, states, the arena.

#include "plan_fixture.hpp"

namespace tenon::cuda {
namespace {

using test::Plans;

TEST_F(Plans, GroupPointwiseNodesOfOneShape) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[4, 6, 8]
  input %b: f32[8]
  %s: f32[4, 6, 8] = Add(%x, %b) @add
  %t: f32[4, 6, 8] = Tanh(%s) @tanh
  %g: f32[4, 6, 8] = Sigmoid(%s) @gate
  %y: f32[4, 6, 8] = Mul(%t, %g) @mul
  output y = %y
}
)");
  EXPECT_EQ(kernels(plan), std::vector<std::string>{"pointwise"});
  EXPECT_EQ(plan.arena_bytes, 0u);
  check(plan);
}

TEST_F(Plans, KeepAValueThatOthersRead) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[6]
  %s: f32[6] = Exp(%x) @exp
  %y: f32[6] = Neg(%s) @neg
  output s = %s
  output y = %y
  output again = %y
  output x = %x
}
)");
  EXPECT_EQ(kernels(plan),
            (std::vector<std::string>{"pointwise", "pointwise", "memcpy", "memcpy"}));
  check(plan);
}

TEST_F(Plans, PutBiasAndActivationIntoProducts) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[2, 5, 3]
  input %w: f32[3, 4]
  input %b: f32[4]
  %h: f32[2, 5, 4] = MatMul(%x, %w) @matmul
  %s: f32[2, 5, 4] = Add(%b, %h) @add
  %y: f32[2, 5, 4] = Relu(%s) @relu
  output y = %y
}
)");
  ASSERT_EQ(plan.steps.size(), 1u);
  const Product& product = std::get<Product>(plan.steps[0].work);
  EXPECT_GE(product.bias, 0);
  EXPECT_EQ(product.activation, Activation::kRelu);
  EXPECT_EQ(product.m, 10);
  EXPECT_EQ(product.batch, 1);
  check(plan);
}

TEST_F(Plans, AddResidualsInProducts) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[2, 5, 4]
  input %w: f32[4, 4]
  input %b: f32[4]
  input %scale: f32[4]
  %e: f32[2, 5, 4] = Exp(%x) @exp
  %h: f32[2, 5, 4] = MatMul(%e, %w) @matmul
  %s: f32[2, 5, 4] = Add(%h, %b) @bias
  %r: f32[2, 5, 4] = Add(%e, %s) @residual
  %n: f32[2, 5, 4] = LayerNormalization(%r, %scale) @norm
  output n = %n
}
)");
  EXPECT_EQ(kernels(plan), (std::vector<std::string>{"pointwise", "cublaslt", "norm_warp"}));
  const Product& product = std::get<Product>(plan.steps[1].work);
  EXPECT_GE(product.bias, 0);
  EXPECT_GE(product.c, 0);
  EXPECT_EQ(product.beta, 1);
  check(plan);
}

// The later of two convolutions adds what the earlier one made.
TEST_F(Plans, AddResidualsInConvolutions) {
  std::string text = R"(graph {
  input %x: f32[2, 3, 4, 4]
  input %w: f32[4, 3, 1, 1]
  input %v: f32[4, 3, 3, 3]
  input %b: f32[4]
  %l: f32[2, 4, 4, 4] = Conv(%x, %w) @left
  %r: f32[2, 4, 4, 4] = Conv(%x, %v, %b) {pads = ints [1, 1, 1, 1]} @right
  %s: f32[2, 4, 4, 4] = Add(%l, %r) @sum
  %y: f32[2, 4, 4, 4] = Relu(%s) @relu
  output y = %y
}
)";
  Plan plan = plan_of(text);
  EXPECT_EQ(kernels(plan),
            (std::vector<std::string>{"copy_4", "cudnn", "copy_4", "cudnn", "copy_4"}));
  const Convolution* last = std::get_if<Convolution>(&plan.steps[3].work);
  ASSERT_TRUE(last);
  EXPECT_GE(last->z, 0);
  EXPECT_TRUE(last->relu);
  check(plan);

  Target target{ctx_};
  target.why_no_convolution = [](const Convolution& c) { return c.z < 0 ? "" : "no residuals"; };
  Plan apart = plan_for(target);
  EXPECT_GT(apart.steps.size(), plan.steps.size());
  check(apart);
}

TEST_F(Plans, TransposeConvolutionsByAGradient) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[2, 4, 5, 3]
  input %w: f32[4, 3, 3, 2]
  input %b: f32[6]
  %t: f32[2, 6, 10, 6] = ConvTranspose(%x, %w, %b) {group = 2, strides = ints [2, 2], pads = ints [1, 0, 1, 0], output_padding = ints [1, 0]} @transpose
  %y: f32[2, 6, 10, 6] = Relu(%t) @relu
  output y = %y
}
)");
  // x and w transposed; the gradient; bias and ReLU; the result transposed back.
  int n_convolutions = 0, n_pointwise = 0;
  for (const Step& step : plan.steps) {
    const Convolution* c = std::get_if<Convolution>(&step.work);
    n_convolutions += c && c->kind == ConvolutionKind::kInputGrad;
    n_pointwise += step.kernel.starts_with("pointwise");
  }
  EXPECT_EQ(n_convolutions, 1);
  EXPECT_EQ(n_pointwise, 1);
  check(plan);
}

TEST_F(Plans, PadTransposedConvolutionsAsTheirOutputPaddingNeeds) {
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER"}) {
    check(plan_of(cat(R"(graph {
  input %x: f32[1, 2, 4]
  input %w: f32[2, 2, 3]
  %y: f32[1, 2, 12] = ConvTranspose(%x, %w) {auto_pad = ")",
                      mode, R"(", strides = ints [3], output_padding = ints [2]} @transpose
  output y = %y
}
)")));
  }
}

TEST_F(Plans, RunAttention) {
  Plan plan = plan_of(R"(graph {
  input %q: f32[2, 6, 8]
  input %k: f32[2, 6, 8]
  input %v: f32[2, 6, 8]
  input %mask: f32[2, 1, 6]
  %kt: f32[2, 8, 6] = Transpose(%k) {perm = ints [0, 2, 1]} @transpose
  %s: f32[2, 6, 6] = MatMul(%q, %kt) @scores
  %m: f32[2, 6, 6] = Add(%s, %mask) @masked
  %p: f32[2, 6, 6] = Softmax(%m) @softmax
  %y: f32[2, 6, 8] = MatMul(%p, %v) @context
  output y = %y
}
)");
  check(plan);
}

TEST_F(Plans, ComputeInHalfPrecision) {
  for (const char* type : {"f16", "bf16"}) {
    std::string text = R"(graph {
  input %x: T[4, 64]
  input %w: T[64, 32]
  input %s: T[32]
  %h: T[4, 32] = MatMul(%x, %w) @matmul
  %n: T[4, 32] = LayerNormalization(%h, %s) @norm
  %g: T[4, 32] = Gelu(%n) @gelu
  %p: T[4, 32] = Softmax(%g) @softmax
  output g = %g
  output p = %p
}
)";
    for (size_t at; (at = text.find(": T")) != std::string::npos;)
      text.replace(at + 2, 1, type);
    Plan plan = plan_of(text);
    check(plan, 1, std::string(type) == "f16" ? 4e-3 : 4e-2);
  }
}

TEST_F(Plans, KeepStatesOverRunsAndSwapThem) {
  Plan plan = plan_of(R"(graph {
  input %a: f32[3]
  input %b: f32[3]
  input %x: f32[3]
  %n: f32[3] = Add(%a, %x) @add
  %y: f32[3] = Sub(%n, %b) @sub
  output new_a = %b
  output new_b = %n
  output y = %y
  state %a -> %b
  state %b -> %n
}
)");
  EXPECT_EQ(plan.states.size(), 2u);
  EXPECT_EQ(plan.inputs.size(), 1u);
  EXPECT_EQ(plan.outputs.size(), 1u);
  check(plan, 4);
}

TEST_F(Plans, WriteNewStatesOverOldOnesThatNobodyReadsAgain) {
  std::string text = R"(graph {
  input %a: f32[3, 4]
  input %b: f32[3, 4]
  input %x: f32[3, 4]
  input %row: f32[4]
  %p: f32[3, 4] = Mul(%a, %row) @decay
  %n: f32[3, 4] = Add(%p, %x) @add
  %s: f32[3, 4] = Softmax(BEFORE) @softmax
  %m: f32[3, 4] = Add(%b, %s) @sum
  output new_a = %n
  output new_b = %m
  state %a -> %n
  state %b -> %m
}
)";
  auto with = [&](const char* read) {
    std::string made = text;
    return made.replace(made.find("BEFORE"), 6, read);
  };
  Plan plan = plan_of(with("%n"));
  EXPECT_EQ(kernels(plan), (std::vector<std::string>{"pointwise", "softmax_w", "pointwise"}));
  check(plan, 3);

  plan = plan_of(with("%a"));  // the old one is read when the new one is there
  EXPECT_EQ(kernels(plan),
            (std::vector<std::string>{"pointwise", "softmax_w", "pointwise", "memcpy"}));
  check(plan, 3);
}

// The value of the run before: what one state was is another's new value.
TEST_F(Plans, KeepAnOldStateThatAnotherStateBecomes) {
  Plan plan = plan_of(R"(graph {
  input %now: f32[2, 3]
  input %before: f32[6]
  input %x: f32[2, 3]
  constant %flat: i64[1] = [6]
  %old: f32[6] = Reshape(%now, %flat) @keep
  %n: f32[2, 3] = Add(%now, %x) @add
  %y: f32[6] = Neg(%before) @neg
  output n = %n
  output o = %old
  output y = %y
  state %now -> %n
  state %before -> %old
}
)");
  check(plan, 3);
}

TEST_F(Plans, KeepOneValueInTwoStates) {
  Plan plan = plan_of(R"(graph {
  input %a: f32[3]
  input %b: f32[3]
  input %x: f32[3]
  %y: f32[3] = Sub(%a, %b) @sub
  %n: f32[3] = Add(%a, %x) @add
  output new_a = %n
  output new_b = %n
  output y = %y
  output a = %a
  state %a -> %n
  state %b -> %n
}
)");
  check(plan, 3);
}

TEST_F(Plans, AddToZerosThatWereMadeForIt) {
  Plan plan = plan_of(R"(graph {
  input %i: i64[3, 1]
  input %dy: f32[3, 4]
  constant %zero: f32[] = [0]
  constant %shape: i64[2] = [5, 4]
  %z: f32[5, 4] = Expand(%zero, %shape) @zeros
  %dx: f32[5, 4] = ScatterND(%z, %i, %dy) {reduction = "add"} @scatter
  %y: f32[5, 4] = Neg(%dx) @neg
  output y = %y
}
)");
  EXPECT_EQ(kernels(plan), (std::vector<std::string>{"copy_4", "scatter_a", "pointwise"}));
  check(plan);
}

// The step that tests/bench/cuda times.
TEST_F(Plans, TrainAnMlp) {
  Plan plan = plan_of(R"(graph {
  input %w0: f32[8, 8]
  input %w1: f32[8, 8]
  input %x: f32[8, 8]
  input %t: f32[8, 8]
  input %rate: f32[]
  %h: f32[8, 8] = MatMul(%x, %w0) @first
  %r: f32[8, 8] = Relu(%h) @relu
  %y: f32[8, 8] = MatMul(%r, %w1) @second
  %e: f32[8, 8] = Sub(%y, %t) @error
  %g1: f32[8, 8] = Gemm(%r, %e) {transA = 1} @grad1
  %gr: f32[8, 8] = Gemm(%e, %w1) {transB = 1} @back
  %s: f32[8, 8] = Sign(%r) @mask
  %gh: f32[8, 8] = Mul(%gr, %s) @through
  %g0: f32[8, 8] = Gemm(%x, %gh) {transA = 1} @grad0
  %d0: f32[8, 8] = Mul(%g0, %rate) @scale0
  %n0: f32[8, 8] = Sub(%w0, %d0) @update0
  %d1: f32[8, 8] = Mul(%g1, %rate) @scale1
  %n1: f32[8, 8] = Sub(%w1, %d1) @update1
  output n0 = %n0
  output n1 = %n1
  output y = %y
  state %w0 -> %n0
  state %w1 -> %n1
}
)");
  EXPECT_EQ(plan.states.size(), 2u);
  check(plan, 3);
}

TEST_F(Plans, ReportAnIndexThatDoesNotExist) {
  Plan plan = plan_of(R"(graph {
  input %x: f32[3, 2]
  input %i: i64[2]
  %y: f32[2, 2] = Gather(%x, %i) @pick
  output y = %y
}
)");
  test::Emulator emulator(folder_.string());
  ASSERT_EQ(emulator.build(), "");
  std::vector<test::Bytes> states;
  test::Bytes x = test::packed(TN_F32, {1, 2, 3, 4, 5, 6});

  test::Ran good = test::run_plan(plan, emulator, {x, test::packed(TN_I64, {-1, 0})}, &states);
  test::Ran bad = test::run_plan(plan, emulator, {x, test::packed(TN_I64, {3, 0})}, &states);

  EXPECT_EQ(good.fault, 0u);
  EXPECT_EQ(good.outputs[0], test::packed(TN_F32, {5, 6, 1, 2}));
  ASSERT_EQ(bad.fault, 1u);
  EXPECT_EQ(plan.faults[0], "node pick: an index of i lies outside axis 0 of size 3");
}

TEST_F(Plans, UseArenaMemoryAgain) {
  std::string text = "graph {\n  input %x: f32[1024]\n";
  std::string last = "%x";
  for (int i = 0; i < 8; ++i) {
    text += cat("  %s", i, ": f32[1024] = Softmax(", last, ") @n", i, "\n");
    last = cat("%s", i);
  }
  Plan plan = plan_of(text + "  output y = " + last + "\n}\n");

  EXPECT_EQ(plan.arena_bytes, 2u * 4096);
  EXPECT_EQ(plan.arena_bytes, plan.arena_lower_bound);
  check(plan);
}

struct Refusal {
  const char* node;
  const char* why;
};
class Refuses : public Plans, public testing::WithParamInterface<Refusal> {};

TEST_P(Refuses, WithAReason) {
  std::string text = cat("graph {\n  input %x: f32[2, 3]\n  input %i: i64[2]\n  input %v: f32[3]\n",
                         "  input %d: f64[2, 3]\n  input %axis: i64[]\n",
                         "  input %long: f16[1, 1, 3000000000]\n  ", GetParam().node,
                         " @node\n  output y = %y\n}\n");
  graph_ = parse(text);
  ASSERT_TRUE(graph_.get());

  std::string why = why_not(*import_graph(graph_.get()), 0);

  EXPECT_NE(why.find(GetParam().why), std::string::npos) << why;
}
INSTANTIATE_TEST_SUITE_P(
    Nodes,
    Refuses,
    testing::Values(Refusal{"%y: i64[2, ?] = NonZero(%x)", "depends on data"},
                    Refusal{"%y: f32[2] = MatMul(%x, %v)", "a product with a vector"},
                    Refusal{"%y: f64[2, 3] = Softmax(%d)", "float64"},
                    Refusal{"%y: f16[1, 1, 2999999999] = MaxPool(%long) {kernel_shape = ints [2]}",
                            "an image of more than 2^31 elements"},
                    Refusal{"%y: f32[2, 3] = CumSum(%x, %axis)", "no kernel for this operator"}));

}  // namespace
}  // namespace tenon::cuda
