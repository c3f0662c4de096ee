// SPDX-License-Identifier: Apache-2.0
// Norms of each example's gradient, against the gradient of each example alone.
#include "example_norms.hpp"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::HasSubstr;

// A model between inputs, of which those with n are data and the others parameters, and the value
// y: its loss by example is the sum of tanh(y) over all but the first axis.
struct Model {
  std::string inputs, nodes;
  std::string y;          // its shape, without n
  std::string last_axes;  // of y, from the second on
};

class ExampleNorms : public ExampleNormsTest {
 protected:
  static std::string graph_text(const Model& model, bool is_scalar) {
    std::string text =
        cat("graph {\n", model.inputs, model.nodes, losses_of("n", model.y, model.last_axes));
    if (is_scalar) text += "  %total: f64[] = ReduceSum(%l) {keepdims = 0} @total\n";
    return cat(text, "  output losses = %", is_scalar ? "total" : "l", "\n}\n");
  }

  // Data are the inputs with the open axis.
  static ExampleInputs inputs_for(const Graph& graph) {
    ExampleInputs out;
    std::mt19937 random(3);
    for (Value input : graph.inputs()) {
      const Type type = input.type();
      const bool is_data = !type.dims.empty() && type.dims[0] < 0;
      int64_t n = 1;
      for (int64_t dim : type.dims)
        n *= dim < 0 ? kExamples : dim;
      out.add(input.name(), is_data, type.dtype == TN_I64, n, random);
    }
    return out;
  }

  // The pass with rules and without agrees with that; gives its report.
  json check(const Model& model, size_t n_by_rules) {
    OwnedGraph graph = parse(graph_text(model, false));
    if (!graph.get()) return {};
    ExampleInputs inputs = inputs_for(graph.view());
    std::vector<double> want = one_by_one(
        applied(parse(graph_text(model, true)), "autodiff.grad", {{"wrt", inputs.parameters}}),
        inputs);
    json report;
    for (const char* by : {"rules", "vmap"}) {
      OwnedGraph made;
      EXPECT_EQ(apply_reporting(graph, {{"wrt", inputs.parameters}, {"by", by}}, made, report), "");
      if (!made.get()) return report;
      bool by_rules = std::string_view(by) == "rules";
      EXPECT_EQ(report["by_rules"], by_rules ? n_by_rules : 0) << report.dump(1);
      std::vector<Numbers> got = results(made, inputs.all);
      if (got.size() != 2) {
        ADD_FAILURE() << "expected losses and norms, got " << got.size();
        return report;
      }
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(got[1][i], want[i], 1e-9 * (1 + want[i])) << "example " << i << " by " << by;
      if (by_rules) first_ = report;
    }
    return first_;
  }
  json first_;
};

TEST_F(ExampleNorms, OfLayersWithBiases) {
  check({R"(  input %x: f64[n, 3]
  input %w: f64[3, 5]
  input %b: f64[5]
  input %v: f64[5, 2]
  input %c: f64[1, 2]
)",
         R"(  %p: f64[n, 5] = MatMul(%x, %w) @p
  %q: f64[n, 5] = Add(%p, %b) @q
  %r: f64[n, 5] = Sigmoid(%q) @r
  %s: f64[n, 2] = MatMul(%r, %v) @s
  %y: f64[n, 2] = Add(%s, %c) @y
)",
         "2", "1"},
        4);
}

// 2 s^2 on either side of k o: by Gram matrices, and by the gradient for a moment.
TEST_F(ExampleNorms, OfSequences) {
  for (const char* length : {"2", "7"})
    check({cat("  input %x: f64[n, ", length, ", 3]\n  input %w: f64[3, 4]\n  input %g: f64[4]\n"),
           cat("  %p: f64[n, ", length, ", 4] = MatMul(%x, %w) @p\n  %y: f64[n, ", length,
               ", 4] = Mul(%p, %g) @y\n"),
           cat(length, ", 4"), "1, 2"},
          2);
}

TEST_F(ExampleNorms, OfGemm) {
  for (const char* bias : {"f64[4]", "f64[1, 4]", "f64[]", "f64[1]"})
    check(
        {cat("  input %x: f64[n, 3]\n  input %w: f64[4, 3]\n  input %b: ", bias, "\n"),
         "  %y: f64[n, 4] = Gemm(%x, %w, %b) {transB = 1, alpha = 0.5, beta = 3.0} @y\n", "4", "1"},
        2);
}

TEST_F(ExampleNorms, OfConvolutions) {
  const struct {
    const char *x, *w, *attributes, *y;
  } cases[] = {
      {"4, 5, 5", "6, 4, 3, 3", "pads = ints[1, 1, 1, 1]", "6, 5, 5"},
      {"4, 5, 5", "6, 2, 3, 3", "group = 2, strides = ints[2, 2]", "6, 2, 2"},
      {"4, 7, 7", "4, 1, 3, 3", "group = 4, dilations = ints[2, 2]", "4, 3, 3"},
      {"3, 4, 4", "5, 3, 1, 1", "group = 1", "5, 4, 4"},
      {"3, 6, 6", "2, 3, 2, 3", "auto_pad = \"SAME_UPPER\", strides = ints[2, 1]", "2, 3, 6"},
  };
  for (const auto& one : cases)
    check({cat("  input %x: f64[n, ", one.x, "]\n  input %w: f64[", one.w, "]\n  input %b: f64[",
               std::string(one.y).substr(0, 1), "]\n"),
           cat("  %y: f64[n, ", one.y, "] = Conv(%x, %w, %b) {", one.attributes, "} @y\n"), one.y,
           "1, 2, 3"},
          2);
}

// Places that look up the same row add up; -1 is the last row.
TEST_F(ExampleNorms, OfTables) {
  check({"  input %x: i64[n, 5]\n  input %w: f64[4, 3]\n  input %v: f64[3, 2]\n",
         R"(  %rows: f64[n, 5, 3] = Gather(%w, %x) {axis = 0} @rows
  %y: f64[n, 5, 2] = MatMul(%rows, %v) @y
)",
         "5, 2", "1, 2"},
        2);
}

TEST_F(ExampleNorms, OfWeightsThatAreReadTwiceAreThoseOfTheSum) {
  json report = check({"  input %x: f64[n, 3]\n  input %w: f64[3, 3]\n  input %v: f64[3, 2]\n",
                       R"(  %p: f64[n, 3] = MatMul(%x, %w) @p
  %q: f64[n, 3] = Tanh(%p) @q
  %r: f64[n, 3] = MatMul(%q, %w) @r
  %y: f64[n, 2] = MatMul(%r, %v) @y
)",
                       "2", "1"},
                      1);
  EXPECT_EQ(report["by_vmap"]["w"], "it is read in several places");
}

TEST_F(ExampleNorms, OfOperatorsWithoutARule) {
  json report = check({"  input %x: f64[n, 6]\n  input %w: f64[6, 6]\n  input %s: f64[6]\n",
                       R"(  %p: f64[n, 6] = MatMul(%x, %w) @p
  %y: f64[n, 6] = LayerNormalization(%p, %s) {axis = -1} @y
)",
                       "6", "1"},
                      1);
  EXPECT_THAT(report["by_vmap"]["s"], HasSubstr("example_norms"));
}

// What every example gets alone is not what a batch of all computes: rules are not asked.
TEST_F(ExampleNorms, OfModelsThatMixExamplesAreThoseOfEachAlone) {
  json report = check({"  input %x: f64[n, 3]\n  input %w: f64[3, 3]\n  input %b: f64[3]\n",
                       R"(  %p: f64[n, 3] = MatMul(%x, %w) @p
  %t: f64[3, n] = Transpose(%p) {perm = ints[1, 0]} @t
  %s: f64[n, n] = MatMul(%p, %t) @s
  %q: f64[n, 3] = MatMul(%s, %p) @q
  %y: f64[n, 3] = Add(%q, %b) @y
)",
                       "3", "1"},
                      0);
  EXPECT_THAT(report["by_vmap"]["w"], HasSubstr("Transpose"));
}

// Softmax over the batch keeps every shape: what the axes say of it shows it.
TEST_F(ExampleNorms, OfAMixWithoutATraceInShapes) {
  json report = check({"  input %x: f64[n, 3]\n  input %w: f64[3, 3]\n",
                       R"(  %p: f64[n, 3] = MatMul(%x, %w) @p
  %q: f64[n, 3] = Softmax(%p) {axis = 0} @q
  %y: f64[n, 3] = Add(%q, %p) @y
)",
                       "3", "1"},
                      0);
  EXPECT_THAT(report["by_vmap"]["w"], HasSubstr("Softmax"));
}

TEST_F(ExampleNorms, WhatHasNoneIsRefused) {
  EXPECT_THAT(refused(R"(graph {
    input %x: f64[n, 2]
    %y: f64[] = ReduceSum(%x) {keepdims = 0} @y
    output y = %y
  })",
                      "autodiff.example_norms"),
              HasSubstr("a loss for each example"));
  EXPECT_THAT(refused(R"(graph {
    input %x: f64[4, 2]
    constant %a: i64[1] = [1]
    %y: f64[4] = ReduceSum(%x, %a) {keepdims = 0} @y
    output y = %y
  })",
                      "autodiff.example_norms"),
              HasSubstr("size of inputs free"));
  EXPECT_THAT(refused(R"(graph {
    input %x: f64[n, 2]
    input %w: f64[2, 2]
    constant %a: i64[1] = [1]
    %y: f64[n, 2] = MatMul(%x, %w) @y
    %l: f64[n] = ReduceSum(%y, %a) {keepdims = 0} @l
    output l = %l
  })",
                      "autodiff.example_norms", {{"wrt", json::array({"w"})}, {"examples", "x"}}),
              HasSubstr("option examples: expected a graph with gradients"));
}

}  // namespace
}  // namespace tenon::test
