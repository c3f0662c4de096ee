// SPDX-License-Identifier: Apache-2.0
// What becomes of a graph: groups, tails, copies, states, the arena.

#include <algorithm>

#include "graph_numbers.hpp"
#include "lowering.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon::cuda {
namespace {

using tenon::test::Collected;

class Plans : public tenon::test::PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    ASSERT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    ASSERT_EQ(tenon_plugin_load(session_, str("reference")), nullptr);
  }
  OwnedGraph parse(const std::string& text) {
    tn_graph* raw = nullptr;
    Status parsed(services.graph->parse(ctx_, str(text), &raw));
    EXPECT_TRUE(parsed.ok()) << parsed.message();
    return OwnedGraph::take(raw);
  }
  Plan plan_of(const std::string& text) {
    graph_ = parse(text);
    Result<Plan> made = lower(import_graph(graph_.get()));
    if (made.ok()) return std::move(*made);
    ADD_FAILURE() << made.status().message();
    return {};
  }
  static std::vector<std::string> kernels(const Plan& plan) {
    std::vector<std::string> out;
    for (const Step& step : plan.steps)
      out.push_back(step.kernel.substr(0, step.kernel.find("_0")).substr(0, 9));
    return out;
  }
  // Runs on the CPU and compares with the reference; `runs` times, states kept.
  void check(const Plan& plan, int runs = 1, double tolerance = 2e-5) {
    test::Emulator emulator(folder_.string());
    emulator.add(plan);
    ASSERT_EQ(emulator.build(), "");
    tn_plan* reference = nullptr;
    ASSERT_EQ(tenon_compile(session_, graph_.get(), {}, &reference), nullptr);
    std::vector<test::Bytes> states;
    for (int run = 0; run < runs; ++run) {
      std::vector<test::Bytes> inputs =
          test::random_inputs(graph_.get(), 3 + static_cast<uint32_t>(run));
      std::vector<DenseView> views;
      std::vector<const DLTensor*> pointers;
      for (size_t i = 0; i < inputs.size(); ++i)
        views.emplace_back(plan.inputs[i].dtype, plan.inputs[i].dims, inputs[i].data());
      for (const DenseView& view : views)
        pointers.push_back(view.get());
      Collected expected(ctx_);
      Status ran(tenon_run(reference, pointers.data(), pointers.size(), &expected.raw, nullptr));
      ASSERT_TRUE(ran.ok()) << ran.message();
      test::Ran got = test::run_plan(plan, emulator, inputs, &states);
      ASSERT_EQ(got.outputs.size(), expected.tensors.size());
      for (size_t i = 0; i < got.outputs.size(); ++i) {
        const unsigned char* data = expected.tensors[i].data<unsigned char>();
        test::Bytes wanted(data, data + got.outputs[i].size());
        EXPECT_LT(test::difference(got.outputs[i], wanted, plan.outputs[i].dtype), tolerance)
            << "run " << run << " output " << i;
      }
    }
    services.eval->release(reference);
  }

  OwnedGraph graph_;
};

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
  EXPECT_EQ(kernels(plan), (std::vector<std::string>{"pointwise", "softmax_f", "pointwise"}));
  check(plan, 3);

  plan = plan_of(with("%a"));  // the old one is read when the new one is there
  EXPECT_EQ(kernels(plan),
            (std::vector<std::string>{"pointwise", "softmax_f", "pointwise", "memcpy"}));
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

TEST_F(Plans, TellOfAnIndexThatDoesNotExist) {
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
  std::string text =
      cat("graph {\n  input %x: f32[2, 3]\n  input %i: i64[2]\n  input %v: f32[3]\n",
          "  input %d: f64[2, 3]\n  ", GetParam().node, " @node\n  output y = %y\n}\n");
  graph_ = parse(text);
  ASSERT_TRUE(graph_.get());

  std::string why = why_not(import_graph(graph_.get()), 0);

  EXPECT_NE(why.find(GetParam().why), std::string::npos) << why;
}
INSTANTIATE_TEST_SUITE_P(
    Nodes,
    Refuses,
    testing::Values(Refusal{"%y: i64[2, ?] = NonZero(%x)", "depends on data"},
                    Refusal{"%y: f32[2] = MatMul(%x, %v)", "a product with a vector"},
                    Refusal{"%y: f64[2, 3] = Softmax(%d)", "float64"},
                    Refusal{"%y: f32[2, 3] = CumSum(%x, %i)", "no kernel for this operator"}));

}  // namespace
}  // namespace tenon::cuda
