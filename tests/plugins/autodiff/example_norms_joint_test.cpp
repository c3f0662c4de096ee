// SPDX-License-Identifier: Apache-2.0
// Norms of each example's gradient on the joint graph of a training step, whose sizes are known and
// whose loss is one number, against the gradient of each example alone.
#include <gmock/gmock.h>

#include "example_norms.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

// As many examples as there are features in some models: a size alone says nothing.
// Inputs with # in front are data, the others parameters; y: [#, ...].
struct Model {
  std::string inputs, nodes;
  std::string y;          // its shape behind the examples
  std::string last_axes;  // of y, from the second on
};

std::string sized(const std::string& text, int64_t n) {
  std::string out;
  for (char c : text)
    out += c == '#' ? std::to_string(n) : std::string(1, c);
  return out;
}

class JointExampleNorms : public ExampleNormsTest {
 protected:
  // The mean over so many examples of the sum of tanh(y).
  static std::string step_text(const Model& model, int64_t n) {
    return sized(
        cat("graph {\n", model.inputs, model.nodes, losses_of("#", model.y, model.last_axes),
            "  %loss: f64[] = ReduceMean(%l) {keepdims = 0} @mean\n  output loss = %loss\n}\n"),
        n);
  }
  static ExampleInputs inputs_for(const Model& model, const Graph& graph) {
    ExampleInputs out;
    std::mt19937 random(5);
    for (Value input : graph.inputs()) {
      const Type type = input.type();
      const std::string name(input.name());
      const bool is_data = model.inputs.find(cat("%", name, ": f64[#")) != std::string::npos ||
                           model.inputs.find(cat("%", name, ": i64[#")) != std::string::npos;
      out.add(name, is_data, type.dtype == TN_I64, type.elements(), random);
    }
    return out;
  }
  std::vector<double> loop(const Model& model,
                           const ExampleInputs& inputs,
                           std::vector<std::vector<Numbers>>* parts = nullptr) {
    return one_by_one(
        applied(parse(step_text(model, 1)), "autodiff.grad", {{"wrt", inputs.parameters}}), inputs,
        parts);
  }
  // What a trainer has before the update.
  OwnedGraph joint(const Model& model, const ExampleInputs& inputs) {
    return applied(parse(step_text(model, kExamples)), "autodiff.value_and_grad",
                   {{"wrt", inputs.parameters}});
  }
  json reported(const OwnedGraph& graph, const json& options, OwnedGraph& out) {
    json report;
    EXPECT_EQ(apply_reporting(graph, options, out, report), "");
    return report;
  }

  // Rules, and gradients by node for all, agree with the loop; the report of the former.
  json check(const Model& model, size_t n_by_rules) {
    OwnedGraph graph = parse(step_text(model, kExamples));
    if (!graph.get()) return {};
    ExampleInputs inputs = inputs_for(model, graph.view());
    std::vector<double> want = loop(model, inputs);
    OwnedGraph step = joint(model, inputs);
    std::vector<Numbers> before = results(step, inputs.all);
    json first;
    for (const char* by : {"rules", "vmap"}) {
      OwnedGraph made;
      json report = reported(step, {{"by", by}}, made);
      if (!made.get()) return report;
      EXPECT_EQ(report["by_rules"], std::string_view(by) == "rules" ? n_by_rules : 0)
          << report.dump(1);
      std::vector<Numbers> got = results(made, inputs.all);
      EXPECT_EQ(got.size(), before.size() + 1);
      if (got.size() != before.size() + 1) return report;
      for (size_t i = 0; i < before.size(); ++i)
        EXPECT_EQ(got[i], before[i]) << "result " << i << " of the step by " << by;
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(got.back()[i], want[i], 1e-9 * (1 + want[i])) << "example " << i << " " << by;
      if (first.is_null()) first = report;
    }
    return first;
  }
  std::string refused_for(const Model& model) {
    OwnedGraph graph = parse(step_text(model, kExamples)), out;
    return apply(joint(model, inputs_for(model, graph.view())).get(), "autodiff.example_norms", {},
                 out);
  }
};

const Model kLayers{R"(  input %x: f64[#, 3]
  input %w: f64[3, 5]
  input %b: f64[5]
  input %v: f64[5, 4]
  input %c: f64[1, 4]
)",
                    R"(  %p: f64[#, 5] = MatMul(%x, %w) @p
  %q: f64[#, 5] = Add(%p, %b) @q
  %r: f64[#, 5] = Sigmoid(%q) @r
  %s: f64[#, 4] = MatMul(%r, %v) @s
  %y: f64[#, 4] = Add(%s, %c) @y
)",
                    "4", "1"};

TEST_F(JointExampleNorms, OfLayersWithBiases) {
  check(kLayers, 4);
}

TEST_F(JointExampleNorms, OfTablesAndConvolutions) {
  check({"  input %x: i64[#, 5]\n  input %w: f64[4, 3]\n  input %v: f64[3, 2]\n",
         R"(  %rows: f64[#, 5, 3] = Gather(%w, %x) {axis = 0} @rows
  %y: f64[#, 5, 2] = MatMul(%rows, %v) @y
)",
         "5, 2", "1, 2"},
        2);
  check({"  input %x: f64[#, 4, 5, 5]\n  input %w: f64[6, 2, 3, 3]\n  input %b: f64[6]\n",
         "  %y: f64[#, 6, 5, 5] = Conv(%x, %w, %b) {group = 2, pads = ints[1, 1, 1, 1]} @y\n",
         "6, 5, 5", "1, 2, 3"},
        2);
}

// A scale behind a normalization has no rule: the gradients of its node alone are batched.
TEST_F(JointExampleNorms, OfNodesWithoutARule) {
  json report = check({R"(  input %x: f64[#, 3, 6]
  input %w: f64[6, 4]
  input %s: f64[4]
  input %b: f64[4]
)",
                       R"(  %p: f64[#, 3, 4] = MatMul(%x, %w) @p
  %n: f64[#, 3, 4] = LayerNormalization(%p, %s, %b) {axis = -1} @norm
  %t: f64[#, 4, 3] = Transpose(%n) {perm = ints[0, 2, 1]} @turn
  %y: f64[#, 4, 3] = Softmax(%t) {axis = 1} @y
)",
                       "4, 3", "1, 2"},
                      1);
  EXPECT_THAT(report["by_vmap"]["s"], HasSubstr("example_norms"));
  EXPECT_THAT(report["by_vmap"]["b"], HasSubstr("example_norms"));
}

// What is read twice adds up before it is squared, what is transposed first as well.
TEST_F(JointExampleNorms, OfWeightsThatAreReadTwiceAndBehindATranspose) {
  json report = check({R"(  input %x: f64[#, 4]
  input %w: f64[4, 4]
  input %v: f64[4, 4]
)",
                       R"(  %p: f64[#, 4] = MatMul(%x, %w) @p
  %q: f64[#, 4] = Tanh(%p) @q
  %r: f64[#, 4] = MatMul(%q, %w) @r
  %wt: f64[4, 4] = Transpose(%w) {perm = ints[1, 0]} @wt
  %s: f64[#, 4] = MatMul(%r, %wt) @s
  %y: f64[#, 4] = MatMul(%s, %v) @y
)",
                       "4", "1"},
                      1);
  EXPECT_EQ(report["by_vmap"]["w"], "it is read in several places");
}

// Weights that lie transposed, as layers keep them, have the norms of what reads them.
TEST_F(JointExampleNorms, OfWeightsThatOnlyMove) {
  check({"  input %x: f64[#, 4]\n  input %w: f64[5, 4]\n  input %b: f64[1, 5]\n",
         R"(  constant %flat: i64[1] = [5]
  %wt: f64[4, 5] = Transpose(%w) {perm = ints[1, 0]} @wt
  %p: f64[#, 5] = MatMul(%x, %wt) @p
  %c: f64[5] = Reshape(%b, %flat) @c
  %y: f64[#, 5] = Add(%p, %c) @y
)",
         "5", "1"},
        2);
}

// As cross entropy weighs labels: each loss is divided by the share of examples that count.
TEST_F(JointExampleNorms, OfLossesThatDivideByWhatCounts) {
  const std::string text = sized(R"(graph {
  input %x: f64[#, 3]
  input %m: f64[#]
  input %w: f64[3, 2]
  constant %axes: i64[1] = [1]
  %y: f64[#, 2] = MatMul(%x, %w) @y
  %t: f64[#, 2] = Tanh(%y) @tanh
  %l: f64[#] = ReduceSum(%t, %axes) {keepdims = 0} @each
  %share: f64[] = ReduceMean(%m) {keepdims = 0} @share
  %weighted: f64[#] = Mul(%l, %m) @weighted
  %divided: f64[#] = Div(%weighted, %share) @divided
  %loss: f64[] = ReduceMean(%divided) {keepdims = 0} @mean
  output loss = %loss
})",
                                 kExamples);
  OwnedGraph step = applied(parse(text), "autodiff.value_and_grad", {{"wrt", json::array({"w"})}});
  OwnedGraph made;
  reported(step, json::object(), made);
  const Numbers x = {1, -2, 3, 0.5, 0.25, -1, 2, 2, -0.5, -1, 0, 1}, m = {1, 0, 1, 1};
  const Numbers w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6};
  std::vector<Numbers> got = results(made, {x, m, w});
  ASSERT_EQ(got.size(), 3u);
  for (size_t i = 0; i < kExamples; ++i) {
    double sum = 0;
    for (size_t o = 0; o < 2; ++o) {
      double y = 0;
      for (size_t k = 0; k < 3; ++k)
        y += x[3 * i + k] * w[2 * k + o];
      double slope = (1 - std::tanh(y) * std::tanh(y)) * m[i] / 0.75;
      for (size_t k = 0; k < 3; ++k)
        sum += slope * slope * x[3 * i + k] * x[3 * i + k];
    }
    EXPECT_NEAR(got[2][i], std::sqrt(sum), 1e-12) << "example " << i;
  }
}

// By rules and by nodes: a scale, weights that are read twice, a bias.
TEST_F(JointExampleNorms, ClippedGradientsAreTheMeanOfClippedOnes) {
  const Model model{R"(  input %x: f64[#, 4]
  input %w: f64[4, 4]
  input %s: f64[4]
  input %c: f64[4]
)",
                    R"(  %p: f64[#, 4] = MatMul(%x, %w) @p
  %n: f64[#, 4] = LayerNormalization(%p, %s) {axis = -1} @norm
  %wt: f64[4, 4] = Transpose(%w) {perm = ints[1, 0]} @wt
  %q: f64[#, 4] = MatMul(%n, %wt) @q
  %y: f64[#, 4] = Add(%q, %c) @y
)",
                    "4", "1"};
  OwnedGraph graph = parse(step_text(model, kExamples));
  ExampleInputs inputs = inputs_for(model, graph.view());
  std::vector<std::vector<Numbers>> parts;
  std::vector<double> norms = loop(model, inputs, &parts);
  std::vector<double> sorted = norms;
  std::sort(sorted.begin(), sorted.end());
  const double bound = (sorted[1] + sorted[2]) / 2;  // two of four are above it
  OwnedGraph made;
  reported(joint(model, inputs), {{"clip", bound}}, made);
  std::vector<Numbers> got = results(made, inputs.all);
  ASSERT_EQ(got.size(), inputs.parameters.size() + 2);
  for (size_t p = 0; p < inputs.parameters.size(); ++p)
    for (size_t i = 0; i < got[p + 1].size(); ++i) {
      double want = 0;
      for (size_t example = 0; example < kExamples; ++example)
        want += parts[example][p][i] * std::min(1.0, bound / norms[example]) / kExamples;
      EXPECT_NEAR(got[p + 1][i], want, 1e-9) << inputs.parameters[p] << " at " << i;
    }
  for (size_t i = 0; i < norms.size(); ++i)
    EXPECT_NEAR(got.back()[i], norms[i], 1e-9) << "norms stay those before";

  OwnedGraph out;
  EXPECT_THAT(apply(joint(model, inputs).get(), "autodiff.example_norms",
                    {{"clip", 1}, {"wrt", json::array({"w"})}}, out),
              HasSubstr("option clip: expected all 3 parameters"));
}

// The backward pass that the norms read is the one of the step: as many products of matrices.
TEST_F(JointExampleNorms, NeedNoBackwardPassOfTheirOwn) {
  OwnedGraph graph = parse(step_text(kLayers, kExamples));
  OwnedGraph step = joint(kLayers, inputs_for(kLayers, graph.view())), made;
  reported(step, json::object(), made);
  auto n_products = [&](const OwnedGraph& one) {
    OwnedGraph fused = applied(one, "fusion.default");
    int n = 0;
    for (Node node : fused.view().nodes())
      n += node.is("MatMul") || node.is("Gemm");
    return n;
  };
  EXPECT_GT(n_products(step), 3);
  EXPECT_EQ(n_products(made), n_products(step));
}

// Four examples of four features: a transposed batch has the same shape.
// 300 examples, squared, are more than float16 holds.
TEST_F(JointExampleNorms, OfALossInFloat16AreFloat32) {
  OwnedGraph step = applied(parse(R"(graph {
  input %x: f64[300, 2]
  input %w: f64[2, 1]
  constant %axes: i64[1] = [1]
  %p: f64[300, 1] = MatMul(%x, %w) @p
  %h: f16[300, 1] = Cast(%p) {to = dtype f16} @half
  %l: f16[300] = ReduceSum(%h, %axes) {keepdims = 0} @each
  %loss: f16[] = ReduceMean(%l) {keepdims = 0} @mean
  output loss = %loss
})"),
                            "autodiff.value_and_grad", {{"wrt", json::array({"w"})}});
  OwnedGraph made;
  reported(step, json::object(), made);
  Numbers x(600, 0.5);
  for (size_t i = 0; i < 300; ++i)
    x[2 * i] = static_cast<double>(i % 3);
  const Numbers norms = results(made, {x, {1, 1}})[2];
  ASSERT_EQ(norms.size(), 300u);
  for (size_t i = 0; i < 300; ++i)
    EXPECT_NEAR(norms[i], std::hypot(x[2 * i], 0.5), 5e-3) << i;
}

// An input that is as long as the batch by chance is of no example where the others are named.
TEST_F(JointExampleNorms, InputsOfExamplesCanBeNamed) {
  const std::string text = R"(graph {
  input %x: f64[3, 3]
  input %turn: f64[3, 3]
  input %w: f64[3, 2]
  constant %axes: i64[1] = [1]
  %r: f64[3, 3] = MatMul(%x, %turn) @rotated
  %y: f64[3, 2] = MatMul(%r, %w) @y
  %l: f64[3] = ReduceSum(%y, %axes) {keepdims = 0} @each
  %loss: f64[] = ReduceMean(%l) {keepdims = 0} @mean
  output loss = %loss
})";
  OwnedGraph step = applied(parse(text), "autodiff.value_and_grad", {{"wrt", json::array({"w"})}});
  OwnedGraph made;
  EXPECT_THAT(apply(step.get(), "autodiff.example_norms", {}, made), HasSubstr("rotated"));
  reported(step, {{"examples", "x"}}, made);
  const Numbers x = {1, 0, 0, 0, 2, 0, 0, 0, 3}, turn = {1, 1, 0, 0, 1, 0, 0, 0, 1};
  const Numbers norms = results(made, {x, turn, Numbers(6, 0.5)})[2];
  const Numbers wanted = {2, std::sqrt(8.0), std::sqrt(18.0)};  // of x turn, once for each column
  EXPECT_THAT(norms, testing::Pointwise(testing::DoubleNear(1e-12), wanted));
  EXPECT_THAT(apply(step.get(), "autodiff.example_norms", {{"examples", "z"}}, made),
              HasSubstr("option examples: the graph has no input 'z'"));
  EXPECT_THAT(
      apply(step.get(), "autodiff.example_norms", {{"examples", json::array({"x", "w"})}}, made),
      HasSubstr("option examples: input w: expected data with as many examples"));
}

TEST_F(JointExampleNorms, InputsOfAnotherLengthAreNoExamples) {
  const std::string text = R"(graph {
  input %x: f64[3, 3]
  input %turn: f64[2, 3]
  input %w: f64[3, 2]
  constant %axes: i64[1] = [1]
  %q: f64[3, 2] = MatMul(%x, %w) @q
  %y: f64[3, 3] = MatMul(%q, %turn) @y
  %l: f64[3] = ReduceSum(%y, %axes) {keepdims = 0} @each
  %loss: f64[] = ReduceMean(%l) {keepdims = 0} @mean
  output loss = %loss
})";
  OwnedGraph step = applied(parse(text), "autodiff.value_and_grad", {{"wrt", json::array({"w"})}});
  OwnedGraph made;
  EXPECT_THAT(
      apply(step.get(), "autodiff.example_norms", {{"examples", json::array({"x", "turn"})}}, made),
      HasSubstr("option examples: input turn: expected data with as many examples"));
}

TEST_F(JointExampleNorms, OfMixedExamplesAreRefusedWithTheNode) {
  EXPECT_THAT(refused_for({"  input %x: f64[#, 4]\n  input %w: f64[4, 4]\n",
                           R"(  %p: f64[#, 4] = MatMul(%x, %w) @p
  %t: f64[4, #] = Transpose(%p) {perm = ints[1, 0]} @transposed_batch
  %y: f64[#, 4] = MatMul(%t, %w) @y
)",
                           "4", "1"}),
              HasSubstr("transposed_batch"));
  EXPECT_THAT(refused_for({"  input %x: f64[#, 4]\n  input %w: f64[4, 4]\n",
                           R"(  %p: f64[#, 4] = MatMul(%x, %w) @p
  %y: f64[#, 4] = Softmax(%p) {axis = 0} @over_the_batch
)",
                           "4", "1"}),
              HasSubstr("over_the_batch"));
  EXPECT_THAT(refused_for({"  input %x: f64[#, 3]\n  input %w: f64[3, 2]\n",
                           R"(  constant %first: i64[1] = [0]
  %p: f64[#, 2] = MatMul(%x, %w) @p
  %m: f64[1, 2] = ReduceMean(%p, %first) {keepdims = 1} @mean_of_batch
  %y: f64[#, 2] = Sub(%p, %m) @centred
)",
                           "2", "1"}),
              HasSubstr("centred"));
}

}  // namespace
}  // namespace tenon::test
