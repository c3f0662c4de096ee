// SPDX-License-Identifier: Apache-2.0
// A tn_graph as backends read it, and what groups and epilogues are found in it.
#include <gmock/gmock.h>

#include "tenon/sdk/backend/epilogue.hpp"
#include "tenon/sdk/backend/groups.hpp"

#include "kit_fixture.hpp"

namespace tenon::test {
namespace {

using backend::kNone;
using testing::ElementsAre;
using testing::IsEmpty;

using BackendGraph = BackendKit;

TEST_F(BackendGraph, ImportsNodesWithTheirAttributesAndUsers) {
  backend::Graph graph = import(R"(  input %x: f32[2, 3]
  %y: f32[3, 2] = Transpose(%x) {perm = ints [1, 0]} @turn
  %z: f32[3, 2] = Clip(%y, _, %y) @clip
  output z = %z)");

  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].op, "Transpose");
  EXPECT_THAT(graph.nodes[0].integers("perm"), ElementsAre(1, 0));
  EXPECT_EQ(graph.nodes[0].integer("perm", 7), 7);
  EXPECT_EQ(graph.nodes[1].input(1), kNone);
  EXPECT_EQ(graph.nodes[1].input(9), kNone);
  int y = find(graph, "y");
  EXPECT_EQ(graph.value(y).producer, 0);
  EXPECT_THAT(graph.value(y).users, ElementsAre(1, 1));
  EXPECT_EQ(graph.only_user(y), kNone);
  EXPECT_EQ(graph.only_user(find(graph, "x")), 0);
  EXPECT_EQ(graph.only_user(find(graph, "z")), kNone);
  EXPECT_EQ(graph.value(y).bytes(), 24u);
}

TEST_F(BackendGraph, LeavesStatesOutOfInputsAndOutputs) {
  backend::Graph graph = import(R"(  input %count: f32[2]
  input %x: f32[2]
  %next: f32[2] = Add(%count, %x) @add
  output next = %next
  state %count -> %next)");

  EXPECT_THAT(graph.inputs, ElementsAre(find(graph, "x")));
  EXPECT_THAT(graph.outputs, IsEmpty());
  ASSERT_EQ(graph.states.size(), 1u);
  EXPECT_EQ(graph.value(graph.states[0].second).n_outputs, 1);
}

TEST_F(BackendGraph, SaysWhatDependsOnData) {
  backend::Graph graph = import(R"(  input %x: f32[2, 3]
  %y: i64[2, ?] = NonZero(%x) @where
  %z: f32[2, 3] = Neg(%x) @neg
  output y = %y
  output z = %z)");

  EXPECT_THAT(backend::why_not_static(graph, 0), testing::HasSubstr("value y depends on data"));
  EXPECT_EQ(backend::why_not_static(graph, 1), "");
}

// ---- groups

TEST_F(BackendGraph, JoinsNodesWhoseUsersAreAllInOneGroup) {
  backend::Graph graph = import(R"(  input %x: f32[4]
  input %b: f32[1]
  %a: f32[4] = Exp(%x) @a
  %c: f32[4] = Mul(%a, %b) @c
  %d: f32[4] = Add(%a, %c) @d
  %e: f32[4] = Softmax(%d) @e
  %f: f32[4] = Neg(%e) @f
  %g: f32[4] = Abs(%e) @g
  output f = %f
  output g = %g)");
  auto is_pointwise = [&](int node) { return !graph.node(node).expr.empty(); };
  auto groups = backend::Groups::find(graph, is_pointwise, [](auto...) { return true; });

  int d = find_node(graph, "d"), f = find_node(graph, "f"), g = find_node(graph, "g");
  EXPECT_THAT(groups.members(d), ElementsAre(0, 1, 2));
  EXPECT_EQ(groups.root_of(0), d);
  EXPECT_THAT(groups.members(0), IsEmpty());
  EXPECT_THAT(groups.members(f), ElementsAre(f));
  EXPECT_THAT(groups.members(g), ElementsAre(g));
}

TEST_F(BackendGraph, KeepsOutputsAndOtherShapesOutOfGroups) {
  backend::Graph graph = import(R"(  input %x: f32[1]
  input %y: f32[4]
  %small: f32[1] = Exp(%x) @small
  %given: f32[4] = Neg(%y) @given
  %sum: f32[4] = Add(%small, %given) @sum
  output given = %given
  output sum = %sum)");
  auto is_pointwise = [](int) { return true; };
  auto groups = backend::Groups::find(graph, is_pointwise, [](auto...) { return true; });

  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(groups.members(i), ElementsAre(i));
}

TEST_F(BackendGraph, OneProgramOfAGroupGivesWhatItsNodesGive) {
  backend::Graph graph = import(R"(  input %x: f32[4]
  input %y: f32[4]
  %a: f32[4] = Add(%x, %y) @a
  %b: f32[4] = Exp(%a) @b
  %c: f32[4] = Mul(%a, %a) @c
  %d: f32[4] = Sub(%b, %c) @d
  output d = %d)");
  backend::GroupProgram group = backend::join_programs(graph, {0, 1, 2, 3});
  EXPECT_THAT(group.inputs, ElementsAre(find(graph, "x"), find(graph, "y")));

  tn_expr_program program{group.expr.data(), group.expr.size(), 2, TN_EXPR_DOMAIN_FLOAT, 0, 0};
  std::vector<double> x = {0.5, -1, 2, 0}, y = {1, 0.25, -2, 0}, out(4);
  const void* in[] = {x.data(), y.data()};
  EXPECT_EQ(text_of(Status(services.op->evaluate(&program, in, 2, 4, out.data()))), "");
  for (size_t i = 0; i < 4; ++i)
    EXPECT_DOUBLE_EQ(out[i], std::exp(x[i] + y[i]) - (x[i] + y[i]) * (x[i] + y[i]));
}

TEST_F(BackendGraph, AProgramWhoseResultIsNotItsLastNodeEndsWithIt) {
  backend::ProgramBuilder builder;
  uint32_t x = builder.input(0);
  uint32_t twice = builder.emit(TN_EXPR_ADD, x, x);
  builder.emit(TN_EXPR_MUL, twice, twice);
  EXPECT_EQ(builder.emit(TN_EXPR_ADD, x, x), twice);  // it is there already
  std::vector<tn_expr_node> nodes = builder.finish(twice);

  tn_expr_program program{nodes.data(), nodes.size(), 1, TN_EXPR_DOMAIN_FLOAT, 0, 0};
  double in = 3, out = 0;
  const void* inputs[] = {&in};
  EXPECT_EQ(text_of(Status(services.op->evaluate(&program, inputs, 1, 1, &out))), "");
  EXPECT_EQ(out, 6);
}

// ---- epilogues

TEST_F(BackendGraph, AFakeQuantizedNumberIsRoundedAndBounded) {
  backend::ProgramBuilder builder;
  uint32_t x = builder.input(0);
  uint32_t result = builder.fake_quantized(x, builder.number(0.5), -100, 155);
  std::vector<tn_expr_node> expr = builder.finish(result);
  tn_expr_program program{expr.data(), expr.size(), 1, TN_EXPR_DOMAIN_FLOAT, 0, 0};

  // u8 with a zero point of 100: halves to even, then at most 155 steps up and 100 down.
  const double in[] = {0.2, 0.25, 0.75, -1.3, 1000, -1000};
  double out[6] = {};
  const void* inputs[] = {in};
  EXPECT_EQ(text_of(Status(services.op->evaluate(&program, inputs, 1, 6, out))), "");
  EXPECT_THAT(out, ElementsAre(0, 0, 1, -1.5, 77.5, -50));
}

TEST_F(BackendGraph, FindsBiasSumAndActivationBehindAProduct) {
  backend::Graph graph = import(R"(  input %x: f32[1, 2, 4, 4]
  input %w: f32[3, 2, 1, 1]
  input %bias: f32[3, 1, 1]
  input %r: f32[1, 3, 4, 4]
  %y: f32[1, 3, 4, 4] = Conv(%x, %w) @conv
  %a: f32[1, 3, 4, 4] = Add(%bias, %y) @bias
  %b: f32[1, 3, 4, 4] = Add(%a, %r) @sum
  %c: f32[1, 3, 4, 4] = Relu(%b) @relu
  %d: f32[1, 3, 1, 1] = GlobalAveragePool(%c) @pool
  output d = %d)");
  backend::Epilogue all = find_epilogue(graph, 0, 1, [](auto&, auto&) { return true; });

  using Kind = backend::EpilogueOp::Kind;
  ASSERT_EQ(all.ops.size(), 3u);
  EXPECT_EQ(all.ops[0].kind, Kind::kBias);
  EXPECT_EQ(all.ops[0].other, find(graph, "bias"));
  EXPECT_FALSE(all.ops[0].is_first);
  EXPECT_EQ(all.ops[1].kind, Kind::kBinary);
  EXPECT_EQ(all.ops[1].other, find(graph, "r"));
  EXPECT_EQ(all.ops[2].kind, Kind::kUnary);
  EXPECT_EQ(all.result, find(graph, "c"));

  // With channels last in mind, one number for each channel is no bias.
  backend::Epilogue last =
      find_epilogue(graph, 0, 3, [](auto& op, auto&) { return op.kind == Kind::kBias; });
  EXPECT_THAT(last.ops, IsEmpty());
  EXPECT_EQ(last.result, find(graph, "y"));
}

TEST_F(BackendGraph, EndsAnEpilogueWhereAResultIsReadTwice) {
  backend::Graph graph = import(R"(  input %x: f32[2, 3]
  input %w: f32[3, 3]
  %y: f32[2, 3] = MatMul(%x, %w) @product
  %a: f32[2, 3] = Relu(%y) @relu
  %b: f32[2, 3] = Mul(%a, %a) @square
  %c: f32[2, 3] = Neg(%b) @neg
  output c = %c)");
  backend::Epilogue found = find_epilogue(graph, 0, 1, [](auto&, auto&) { return true; });

  ASSERT_EQ(found.ops.size(), 1u);
  EXPECT_EQ(found.result, find(graph, "a"));
}

}  // namespace
}  // namespace tenon::test
