// SPDX-License-Identifier: Apache-2.0
// Expressions of many inputs are cut into nodes of few, whatever their form.
#include "rewrites/many_inputs.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "graph_builder.hpp"
#include "lowering/pointwise_group.hpp"

namespace tenon::onednn::test {
namespace {

constexpr uint32_t kCount = 70;

double computed(const tn_expr_node& e, const std::vector<double>& of) {
  switch (e.op) {
    case TN_EXPR_NEG:
      return -of[e.a];
    case TN_EXPR_EXP:
      return std::exp(of[e.a]);
    case TN_EXPR_ADD:
      return of[e.a] + of[e.b];
    case TN_EXPR_MUL:
      return of[e.a] * of[e.b];
    case TN_EXPR_MAX:
      return std::fmax(of[e.a], of[e.b]);
    default:
      ADD_FAILURE() << "operation " << e.op;
      return 0;
  }
}

std::vector<double> evaluate(const Graph& graph) {
  std::vector<double> values(graph.values.size(), 0);
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    values[static_cast<size_t>(graph.inputs[i])] = std::sin(static_cast<double>(i) + 1);
  for (const Node& node : graph.nodes) {
    std::vector<double> of;
    for (const tn_expr_node& e : node.expr) {
      if (e.op == TN_EXPR_INPUT)
        of.push_back(values[static_cast<size_t>(node.inputs[e.a])]);
      else
        of.push_back(e.op == TN_EXPR_CONST ? e.imm : computed(e, of));
    }
    values[static_cast<size_t>(node.outputs[0])] = of.back();
  }
  return values;
}

// All inputs first, then what `more` adds to the program.
template <class More>
void expect_same_when_cut(const More& more) {
  GraphBuilder b(1);
  std::vector<int> inputs;
  std::vector<tn_expr_node> program;
  for (uint32_t i = 0; i < kCount; ++i) {
    inputs.push_back(b.input("x" + std::to_string(i), {2, i % 3 == 0 ? 1 : 5}));
    program.push_back({TN_EXPR_INPUT, i, 0, 0, 0});
  }
  auto add = [&](uint32_t op, uint32_t x, uint32_t y = 0) {
    program.push_back({op, x, y, 0, 0});
    return static_cast<uint32_t>(program.size()) - 1;
  };
  more(add);
  b.output(b.node("Many", inputs, {2, 5}, {}, program));
  b.graph.finish();
  auto result = static_cast<size_t>(b.graph.outputs[0]);
  double whole = evaluate(b.graph)[result];
  cut_many_inputs(b.graph);
  EXPECT_DOUBLE_EQ(evaluate(b.graph)[result], whole);
  EXPECT_GT(b.graph.nodes.size(), 1u);
  for (const Node& node : b.graph.nodes) {
    EXPECT_LE(node.inputs.size(), kMostPointwiseInputs);
    EXPECT_EQ(b.graph.values[static_cast<size_t>(node.outputs[0])].dims, (Dims{2, 5}));
  }
}

template <class Add>
uint32_t folded(const Add& add, uint32_t op, uint32_t first) {
  uint32_t all = first;
  for (uint32_t i = 1; i < kCount; ++i)
    all = add(op, all, first + i);
  return all;
}

TEST(ManyInputs, AFoldIsCut) {
  expect_same_when_cut([](const auto& add) { folded(add, TN_EXPR_ADD, 0); });
}

TEST(ManyInputs, TwoFoldsOfTheSameInputsAreCut) {
  expect_same_when_cut([](const auto& add) {
    uint32_t sum = folded(add, TN_EXPR_ADD, 0);
    add(TN_EXPR_MUL, sum, add(TN_EXPR_NEG, folded(add, TN_EXPR_MAX, 0)));
  });
}

TEST(ManyInputs, FoldsOfSharedTermsAreCut) {
  expect_same_when_cut([](const auto& add) {
    uint32_t first = add(TN_EXPR_EXP, 0);
    for (uint32_t i = 1; i < kCount; ++i)
      add(TN_EXPR_EXP, i);
    uint32_t sum = folded(add, TN_EXPR_ADD, first);
    add(TN_EXPR_MUL, sum, folded(add, TN_EXPR_MAX, first));
  });
}

TEST(ManyInputs, ATreeIsCut) {
  expect_same_when_cut([](const auto& add) {
    std::vector<uint32_t> level(kCount);
    for (uint32_t i = 0; i < kCount; ++i)
      level[i] = i;
    while (level.size() > 1) {
      std::vector<uint32_t> next;
      for (size_t i = 0; i + 1 < level.size(); i += 2)
        next.push_back(add(TN_EXPR_ADD, level[i], level[i + 1]));
      if (level.size() % 2 != 0) next.push_back(level.back());
      level = next;
    }
  });
}

}  // namespace
}  // namespace tenon::onednn::test
