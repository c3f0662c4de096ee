// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.hpp"

#include <random>

#include "host/graph/graph_fixture.hpp"

namespace tenon::host::test {
namespace {

class WholeGraphTest : public GraphTest {
 protected:
  tn_graph* parse(std::string_view text) {
    tn_graph* graph = nullptr;
    EXPECT_EQ(text_of(graphs.parse(ctx(), str(text), &graph)), "");
    return graph;
  }
  void load(std::string_view text) {
    graphs.release(graph_);
    graph_ = parse(text);
    ASSERT_NE(graph_, nullptr);
  }
  std::string type_in(const tn_graph* graph, std::string_view name) {
    tn_value_id id = graphs.find_value(graph, str(name));
    return id ? type_text(*graph->tables->values.find(id)->type) : "none";
  }
};

TEST_F(WholeGraphTest, BindGivesSymbolsNumbers) {
  load(R"(graph {
    input %x: f32[batch, seq, 4]
    input %m: f32[batch, seq/2+1]
    %r: f32[batch, seq, 4] = Relu(%x) @r
    %c: f32[batch, seq*4] = Custom(%r) @c
    output y = %c })");
  const tn_type* types[] = {TypeOf(TN_F32, {2, 10, 4}), nullptr};
  TypeOf x(TN_F32, {2, 10, 4});
  types[0] = x;
  tn_graph* bound = nullptr;

  ASSERT_EQ(text_of(graphs.bind(graph_, types, 2, &bound)), "");

  EXPECT_EQ(type_in(bound, "m"), "f32[2, 6]");
  EXPECT_EQ(type_in(bound, "r"), "f32[2, 10, 4]");
  EXPECT_EQ(type_in(bound, "c"), "f32[2, 40]");
  EXPECT_EQ(type_in(graph_, "r"), "f32[batch, seq, 4]");
  graphs.release(bound);
}

TEST_F(WholeGraphTest, BindRefusesTwoNumbersForOneSymbol) {
  load("graph { input %x: f32[n] input %y: f32[n/2] output x = %x output y = %y }");
  TypeOf x(TN_F32, {8});
  TypeOf y(TN_F32, {5});
  const tn_type* types[] = {x, y};
  tn_graph* bound = nullptr;

  EXPECT_EQ(text_of(graphs.bind(graph_, types, 2, &bound)),
            "bind: input y: dimension 0: n/2 is 4 elsewhere, got 5");
  EXPECT_EQ(bound, nullptr);
  EXPECT_NE(text_of(graphs.bind(graph_, types, 1, &bound)), "");
}

TEST_F(WholeGraphTest, BindTakesASymbolThatIsSpelledLikeAnExpressionForAName) {
  load(R"(graph {
    input %x: f32["seq-len"]
    input %y: f32["seq-len"]
    %c: f32["seq-len", 2] = Custom(%x) @c
    output z = %c
    output y = %y })");
  TypeOf two(TN_F32, {2}), three(TN_F32, {3});
  const tn_type* same[] = {two, two};
  const tn_type* others[] = {two, three};
  tn_graph* bound = nullptr;

  EXPECT_EQ(text_of(graphs.bind(graph_, others, 2, &bound)),
            "bind: input y: dimension 0: seq-len is 2 elsewhere, got 3");
  ASSERT_EQ(text_of(graphs.bind(graph_, same, 2, &bound)), "");

  EXPECT_EQ(type_in(bound, "c"), "f32[2, 2]");
  graphs.release(bound);
}

TEST_F(WholeGraphTest, ExtractsAPart) {
  build_mlp();
  tn_node_id nodes[] = {find_node("fc")};
  tn_graph* part = nullptr;

  ASSERT_EQ(text_of(graphs.extract(graph_, nodes, 1, &part)), "");

  EXPECT_EQ(graphs.count(part, TN_LIST_INPUTS), 1u);
  EXPECT_EQ(graphs.count(part, TN_LIST_CONSTANTS), 1u);
  EXPECT_EQ(graphs.count(part, TN_LIST_NODES), 1u);
  EXPECT_EQ(view(graphs.io_name(part, TN_LIST_OUTPUTS, 0)), "fc");
  graphs.release(part);
}

TEST_F(WholeGraphTest, SplicesACopyWithNamesMadeUnique) {
  build_mlp();
  tn_graph* other = nullptr;
  ASSERT_EQ(text_of(graphs.clone(graph_, &other)), "");
  begin();
  tn_value_id x2 = input("x2", TypeOf(TN_F32, {8, 4}));
  tn_value_id map[] = {graphs.find_value(other, str("x")), x2, graphs.find_value(other, str("act")),
                       0};

  ASSERT_EQ(text_of(edits.splice(edit_, other, str("teacher"), map, 2)), "");

  EXPECT_EQ(type_of(map[3]), "f32[8, 3]");
  tn_node_id copy = graphs.producer(now(), map[3], nullptr);
  EXPECT_EQ(view(graphs.node_scope(now(), copy)), "teacher");
  EXPECT_EQ(view(graphs.node_name(now(), copy)), "act_1");
  EXPECT_EQ(commit(), "");
  graphs.release(other);
}

TEST_F(WholeGraphTest, SpliceWantsEveryInput) {
  build_mlp();
  tn_graph* other = nullptr;
  ASSERT_EQ(text_of(graphs.clone(graph_, &other)), "");
  begin();
  std::string before = print();

  EXPECT_EQ(text_of(edits.splice(edit_, other, str(""), nullptr, 0)),
            "splice: input x is not given");
  EXPECT_EQ(print(), before);
  graphs.release(other);
}

TEST_F(WholeGraphTest, DecomposesRowsAndFunctions) {
  load(R"(graph {
    input %x: f32[3]
    function F = graph { input %a: f32[3] %b: f32[3] = Relu(%a) @inner output b = %b }
    %d: f32[3] = Double(%x) @d in "s"
    %f: f32[3] = F(%d) @f
    output y = %f })");
  begin();
  const tn_host_op& ops = *op_service();

  EXPECT_EQ(text_of(ops.decompose(edit_, find_node("d"))), "");
  EXPECT_EQ(text_of(ops.decompose(edit_, find_node("f"))), "");
  EXPECT_EQ(code_of(ops.decompose(edit_, find_node("inner"))), TN_UNIMPLEMENTED);
  ASSERT_EQ(commit(), "");

  EXPECT_NE(print().find("%d: f32[3] = Add(%x, %x) @Add in \"s\""), std::string::npos) << print();
  EXPECT_NE(print().find("%f: f32[3] = Relu(%d) @inner"), std::string::npos) << print();
}

TEST_F(WholeGraphTest, InfersByEachRule) {
  begin();
  tn_value_id a = input("a", TypeOf(TN_F32, {-1, 1, 4}, {"n", "", ""}));
  tn_value_id b = input("b", TypeOf(TN_F32, {3, 4}));
  tn_value_id h = input("h", TypeOf(TN_F16, {4}));

  EXPECT_EQ(type_of(node("Add", {a, b}).value), "f32[n, 3, 4]");
  EXPECT_EQ(type_of(node("Less", {a, b}).value), "bool[n, 3, 4]");
  EXPECT_EQ(type_of(node("Reshape", {b, constant("to", TN_I64, {2}, 3)}).value), "f32[3, 4]");
  EXPECT_EQ(type_of(node("Unknown", {b}).value), "?[*]");
  EXPECT_NE(try_node("Add", {a, h}).failure.find("expected inputs of one type, got f32 and f16"),
            std::string::npos);
  EXPECT_NE(try_node("Reshape", {b, constant("bad", TN_I64, {1}, -5)}).failure.find("Reshape"),
            std::string::npos);
}

TEST_F(WholeGraphTest, BodiesAreSnapshots) {
  tn_graph* body = parse("graph { input %a: f32[2] output b = %a }");
  begin();
  tn_any any{TN_ANY_GRAPH, 0, 1, {.p = body}};
  Made s = node("Scale", {input("x", TypeOf(TN_F32, {2}))}, "s", {{"body", any}});
  ASSERT_EQ(commit(), "");
  tn_any got;
  ASSERT_EQ(text_of(graphs.attr(graph_, s.node, str("body"), &got)), "");
  auto* held = static_cast<tn_graph*>(const_cast<void*>(got.v.p));
  tn_edit* edit = nullptr;

  EXPECT_NE(held, body);
  EXPECT_EQ(code_of(edits.begin(held, &edit)), TN_FAILED_PRECONDITION);
  graphs.release(body);
}

TEST_F(WholeGraphTest, TenThousandNodesStayLinear) {
  begin();
  tn_value_id x = input("x", TypeOf(TN_F32, {8}));
  tn_value_id last = x;
  for (int i = 0; i < 10000; ++i)
    last = node("Add", {last, x}).value;
  output("y", last);
  ASSERT_EQ(commit(), "");
  begin();
  for (int i = 0; i < 10000; ++i) {
    tn_node_id old = graphs.node_at(now(), 0);
    tn_value_id in = graphs.io_at(now(), old, TN_LIST_INPUTS, 0);
    tn_value_id out = graphs.io_at(now(), old, TN_LIST_OUTPUTS, 0);
    Made made = node("Relu", {in});
    ASSERT_EQ(text_of(edits.replace_uses(edit_, out, made.value)), "");
    ASSERT_EQ(text_of(edits.erase_node(edit_, old)), "");
  }
  ASSERT_EQ(commit(), "");

  EXPECT_EQ(graphs.count(graph_, TN_LIST_NODES), 10000u);
  EXPECT_EQ(text_of(graphs.verify(graph_)), "");
}

// Random edits against a model: what the text is after each commit or rollback.
TEST_F(WholeGraphTest, RandomEditsKeepEveryIndexExact) {
  std::mt19937 random(11);
  begin();
  tn_value_id x = input("x", TypeOf(TN_F32, {4}));
  output("y", node("Relu", {x}).value);
  ASSERT_EQ(commit(), "");
  for (int round = 0; round < 300; ++round) {
    std::string before = print(graph_);
    begin();
    std::string seen;
    for (unsigned steps = random() % 8; steps > 0; --steps) {
      auto n = graphs.count(now(), TN_LIST_NODES);
      tn_node_id some = graphs.node_at(now(), random() % n);
      tn_value_id made = graphs.io_at(now(), some, TN_LIST_OUTPUTS, 0);
      switch (random() % 6) {
        case 0:
          node("Add", {made, x});
          break;
        case 1:
          if (n > 1) (void)text_of(edits.erase_node(edit_, some));
          break;
        case 2:
          (void)text_of(edits.set_input(edit_, some, 0, random() % 2 ? x : made));
          break;
        case 3:
          (void)text_of(edits.replace_uses(edit_, made, x));
          break;
        case 4:
          node("Add", {made, constant("c", TN_F32, {4})}, "k");
          break;
        default:
          (void)text_of(edits.set_node_name(edit_, some, str(cat("r", round))));
      }
      ASSERT_GT(graphs.count(now(), TN_LIST_NODES), 0u);
    }
    bool keep = random() % 2;
    std::string failed;
    if (keep) {
      failed = commit();
    } else {
      rollback();
    }
    if (!keep || !failed.empty()) {
      EXPECT_EQ(print(graph_), before) << failed;
    }
    // The model: a graph read from the text has the same text, and use lists built from nothing.
    tn_graph* fresh = parse(print(graph_, TN_PRINT_DATA));
    ASSERT_EQ(print(fresh), print(graph_));
    for (tn_node_id id : graph_->tables->order) {
      tn_value_id out = graphs.io_at(graph_, id, TN_LIST_OUTPUTS, 0);
      tn_value_id same = graphs.find_value(fresh, graphs.value_name(graph_, out));
      ASSERT_EQ(graphs.consumer_count(graph_, out), graphs.consumer_count(fresh, same));
    }
    graphs.release(fresh);
  }
}

}  // namespace
}  // namespace tenon::host::test
