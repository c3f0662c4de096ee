// SPDX-License-Identifier: Apache-2.0
// One test per rule: what breaks it is refused at commit, and the message starts with the rule.
#include "graph/verifier.hpp"

#include "host/graph/graph_fixture.hpp"

namespace tenon::host::test {
namespace {

class VerifierTest : public GraphTest {
 protected:
  void expect_rule(const std::string& rule, const std::string& detail) {
    std::string message = commit();
    EXPECT_EQ(message.substr(0, rule.size()), rule) << message;
    EXPECT_NE(message.find(detail), std::string::npos) << message;
  }
  // A graph whose tables were changed behind the edit's back.
  template <class Change>
  std::string broken(Change change) {
    auto tables = std::make_shared<Tables>(*graph_->tables);
    change(*tables);
    auto graph = Ref<tn_graph>::take(new_graph(ctx(), tables));
    return text_of(graphs.verify(graph.get()));
  }
};

TEST_F(VerifierTest, V1Acyclic) {
  begin();
  tn_value_id x = input("x", TypeOf(TN_F32, {2}));
  Made a = node("Relu", {x}, "a");
  Made b = node("Relu", {a.value}, "b");
  EXPECT_EQ(text_of(edits.set_input(edit_, a.node, 0, b.value)), "");

  expect_rule("V1 acyclic", "b <- a");
}

TEST_F(VerifierTest, V2ValuesExist) {
  build_mlp();
  begin();
  EXPECT_EQ(text_of(edits.erase_node(edit_, find_node("act"))), "");

  expect_rule("V2 values exist", "output act");
}

TEST_F(VerifierTest, V3Arity) {
  build_mlp();
  std::string message =
      broken([&](Tables& t) { t.nodes.edit(find_node("fc"))->inputs.pop_back(); });

  EXPECT_EQ(message, "V3 arity: node fc (MatMul): expected 2 inputs, got 1");
  begin();
  EXPECT_NE(try_node("MatMul", {find("x")}).failure.find("expected 2 inputs, got 1"),
            std::string::npos);
}

TEST_F(VerifierTest, RowsOfTheVersionThatTheGraphImportsCount) {
  tn_op one = op_row("Odd", 0, "a -> a", "", R"([{"name": "old", "type": "int"}])");
  tn_op two = op_row("Odd", 0, "a, a -> a", "", R"([{"name": "new", "type": "float"}])");
  one.domain = two.domain = str("acme");
  one.since_version = 2;
  two.since_version = 5;
  add_row(one);
  add_row(two);
  begin();
  EXPECT_EQ(text_of(edits.set_note(edit_, 0, str("opset.acme"), any_i64(3))), "");
  tn_value_id x = input("x", TypeOf(TN_F32, {2}));
  tn_str name = str("old");
  tn_any value = any_i64(1);
  tn_node_desc desc{};
  desc.struct_size = sizeof desc;
  desc.domain = str("acme");
  desc.type = str("Odd");
  desc.inputs = &x;
  desc.n_inputs = desc.n_outputs = desc.n_attrs = 1;
  desc.attr_names = &name;
  desc.attr_values = &value;
  tn_value_id y = 0;
  EXPECT_EQ(text_of(edits.add_node(edit_, &desc, nullptr, &y)), "");
  output("y", y);
  EXPECT_EQ(commit(), "");
  EXPECT_EQ(text_of(graphs.verify(graph_)), "");

  begin();
  EXPECT_EQ(text_of(edits.set_note(edit_, 0, str("opset.acme"), any_i64(1))), "");
  EXPECT_EQ(session_.ops->why_none(*now()->tables, "acme", "Odd"),
            "; the model imports acme 1, rows begin at 2");
}

TEST_F(VerifierTest, V3OutputsAreAsManyAsTheRowGives) {
  build_mlp();
  auto outputs = [&](size_t n) {
    return broken([&](Tables& t) {
      auto& all = t.nodes.edit(find_node("act"))->outputs;
      all.resize(n, all[0]);
    });
  };

  EXPECT_EQ(outputs(0), "V3 arity: node act (Relu): expected 1 output or more, got 0");
  EXPECT_EQ(outputs(2), "V3 arity: node act (Relu): expected 1 output, got 2");
}

TEST_F(VerifierTest, V4Attributes) {
  build_mlp();
  begin();
  node("Scale", {find("x")}, "s", {{"alhpa", any_f64(1)}});
  expect_rule("V4 attributes",
              "node s (Scale): attribute alhpa: the operator has none of this "
              "name (did you mean 'alpha'?)");
  begin();
  node("Scale", {find("x")}, "s", {{"captures", any_text("many")}});
  expect_rule("V4 attributes", "expected int, got 'many'");
}

TEST_F(VerifierTest, V5Types) {
  build_mlp();
  std::string message =
      broken([&](Tables& t) { t.values.edit(find("act"))->type = seal(Type(TN_F32, {-1, 9})); });

  EXPECT_EQ(message,
            "V5 types: node act (Relu): output act: expected f32[batch, 3], got f32[?, 9]");
}

TEST_F(VerifierTest, V6Names) {
  build_mlp();
  std::string message = broken([&](Tables& t) { t.outputs.push_back(t.outputs[0]); });

  EXPECT_EQ(message, "V6 names: output y: two outputs have this name");
}

TEST_F(VerifierTest, V7States) {
  begin();
  tn_value_id s = input("s", TypeOf(TN_F32, {2}));
  tn_value_id c = input("c", TypeOf(TN_F32, {3, 2}));
  tn_value_id sum = node("Add", {s, c}, "sum").value;
  output("next", sum);
  EXPECT_EQ(text_of(edits.pair_state(edit_, s, sum)), "");

  expect_rule("V7 states",
              "state pair s -> sum: expected types that agree, got f32[2] and f32[3, 2]");
}

TEST_F(VerifierTest, V8Bodies) {
  tn_graph* body = nullptr;
  ASSERT_EQ(text_of(graphs.parse(ctx(), str("graph { input %a: f32[2] output b = %a }"), &body)),
            "");
  tn_any any{TN_ANY_GRAPH, 0, 1, {.p = body}};
  begin();
  tn_value_id x = input("x", TypeOf(TN_F32, {3}));
  Made scale = node("Scale", {x}, "s", {{"body", any}, {"captures", any_i64(2)}});
  EXPECT_NE(scale.node, 0u);
  expect_rule("V8 bodies", "body body: expected 2 captured inputs, got 1 in the body");

  begin();
  x = input("x", TypeOf(TN_F32, {3}));
  node("Scale", {x}, "s", {{"body", any}, {"captures", any_i64(1)}});
  expect_rule("V8 bodies", "input a: expected f32[3], got f32[2]");
  graphs.release(body);
}

TEST_F(VerifierTest, V9Functions) {
  tn_graph* body = nullptr;
  ASSERT_EQ(text_of(graphs.parse(ctx(), str("graph { input %a: f32[2] output b = %a }"), &body)),
            "");
  begin();
  tn_value_id x = input("x", TypeOf(TN_F32, {2}));
  EXPECT_EQ(text_of(edits.add_function(edit_, str(""), str("F"), body, nullptr)), "");
  EXPECT_NE(try_node("F", {x, x}).failure.find("expected at most 1 inputs, got 2"),
            std::string::npos);
  EXPECT_EQ(type_of(node("F", {x}, "f").value), "f32[2]");
  ASSERT_EQ(commit(), "");
  std::string message =
      broken([&](Tables& t) { t.nodes.edit(find_node("f"))->inputs.push_back(find("x")); });
  EXPECT_EQ(message.substr(0, 12), "V9 functions") << message;
  graphs.release(body);
}

TEST_F(VerifierTest, V10Sizes) {
  begin();
  int64_t big = int64_t{1} << 40;
  tn_value_id a = input("a", TypeOf(TN_F32, {big, 1}));
  tn_value_id b = input("b", TypeOf(TN_F32, {1, big}));
  node("MatMul", {a, b}, "huge");

  expect_rule("V10 sizes", "value huge: f32[1099511627776, 1099511627776]: its size overflows");
}

TEST_F(VerifierTest, V11Constants) {
  build_mlp();
  std::string message =
      broken([&](Tables& t) { t.values.edit(find("w"))->type = seal(Type(TN_F16, {4, 3})); });

  EXPECT_EQ(message, "V11 constants: constant w: its tensor is no f16[4, 3]");
}

}  // namespace
}  // namespace tenon::host::test
