// SPDX-License-Identifier: Apache-2.0
#include "text/text.hpp"

#include <random>

#include "host/graph/graph_fixture.hpp"

namespace tenon::host::test {
namespace {

class TextTest : public GraphTest {
 protected:
  tn_graph* parse(const std::string& text, std::string* failure = nullptr) {
    tn_graph* graph = nullptr;
    std::string message = text_of(graphs.parse(ctx(), str(text), &graph));
    if (failure) {
      *failure = message;
    } else {
      EXPECT_EQ(message, "") << text;
    }
    return graph;
  }
  std::string failure_of(const std::string& text) {
    std::string failure;
    graphs.release(parse(text, &failure));
    return failure;
  }

  // One of everything that the text can say.
  void build_everything() {
    tn_graph* body = parse("graph { input %a: f32[2] %b: f32[2] = Relu(%a) @r output b = %b }");
    begin();
    tn_value_id x = input("x", TypeOf(TN_F32, {-1, 4, -1}, {"batch", "", "seq/2 + 1"}));
    tn_value_id s = input("odd name \"\n%", TypeOf(TN_BF16, {}));
    tn_value_id w = constant("w", TN_F32, {5, 5});
    tn_value_id i = constant("i", TN_I64, {3}, -1);
    tn_any graph_any{TN_ANY_GRAPH, 0, 1, {.p = body}};
    int64_t ints[] = {1, -2};
    tn_any list{TN_ANY_I64S, 0, 2, {.p = ints}};
    Made scale =
        node("Scale", {x}, "scale", {{"alpha", any_f64(0.1)}, {"axes", list}, {"body", graph_any}});
    EXPECT_EQ(text_of(edits.set_scope(edit_, scale.node, str("a/b"))), "");
    Made custom = node("Custom", {w, 0, i}, "custom node");
    EXPECT_EQ(text_of(edits.set_type(edit_, custom.value, TypeOf(TN_F16, {7}))), "");
    output("y", scale.value);
    output("z", s);
    EXPECT_EQ(text_of(edits.pair_state(edit_, s, s)), "");
    EXPECT_EQ(text_of(edits.add_function(edit_, str("d"), str("F"), body, body)), "");
    EXPECT_EQ(text_of(edits.set_note(edit_, 0, str("g"), any_f64(1e300))), "");
    EXPECT_EQ(text_of(edits.set_note(edit_, x, str("v"), any_text("\\ \x01 \xff"))), "");
    EXPECT_EQ(text_of(edits.set_note(edit_, scale.node, str("n"), any_i64(-3))), "");
    ASSERT_EQ(commit(), "");
    graphs.release(body);
  }
};

TEST_F(TextTest, PrintsOneLinePerThing) {
  build_mlp();

  EXPECT_EQ(print(), R"(graph {
  input %x: f32[batch, 4]
  constant %w: f32[4, 3] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
  %fc: f32[batch, 3] = MatMul(%x, %w) @fc
  %act: f32[batch, 3] = Relu(%fc) @act
  output y = %act
}
)");
}

TEST_F(TextTest, RoundTripsToTheByte) {
  build_everything();
  std::string text = print(graph_, TN_PRINT_DATA);

  tn_graph* again = parse(text);
  ASSERT_NE(again, nullptr);

  EXPECT_EQ(print(again, TN_PRINT_DATA), text);
  EXPECT_EQ(print(again), print(graph_));
  graphs.release(again);
}

TEST_F(TextTest, LargeConstantsAreHashedUnlessDataIsAskedFor) {
  build_everything();

  EXPECT_NE(print().find("%w: f32[5, 5] = hash'"), std::string::npos);
  EXPECT_NE(print(graph_, TN_PRINT_DATA).find("= x'0000"), std::string::npos);
  EXPECT_NE(failure_of(print()).find("TN_PRINT_DATA"), std::string::npos);
}

TEST_F(TextTest, FailuresSayLineAndColumn) {
  EXPECT_EQ(failure_of("graph {\n  inputs %x\n}"),
            "graph text: line 2, column 3: expected input, constant, function, output, state, "
            "note, a node or '}', got 'inputs %x'");
  EXPECT_NE(failure_of("graph { output y = %x }").find("(not x)"), std::string::npos);
  EXPECT_NE(failure_of("graph {").find("got the end"), std::string::npos);
  EXPECT_NE(failure_of("").find("line 1, column 1"), std::string::npos);
  EXPECT_NE(failure_of("graph { constant %c: f32[9000000000000000] = x'00' }"), "");
  EXPECT_NE(failure_of("graph { constant %c: f32[4611686018427387904, 8] = [1] }"), "");
}

TEST_F(TextTest, DeepNestingIsRefused) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += "graph { function F = ";

  EXPECT_NE(failure_of(text).find("graphs in each other"), std::string::npos);
}

TEST_F(TextTest, SurvivesTenThousandMutations) {
  build_everything();
  const std::string text = print(graph_, TN_PRINT_DATA);
  std::mt19937 random(7);
  int parsed = 0;
  for (int round = 0; round < 10000; ++round) {
    std::string broken = text;
    for (unsigned edits_left = 1 + random() % 3; edits_left > 0; --edits_left) {
      size_t at = random() % broken.size();
      size_t length = 1 + random() % 12;
      switch (random() % 4) {
        case 0:
          broken[at] = static_cast<char>(random());
          break;
        case 1:
          broken.erase(at, length);
          break;
        case 2:
          broken.insert(at, broken.substr(random() % broken.size(), length));
          break;
        default:
          broken.resize(at + 1);
      }
    }
    std::string failure;
    tn_graph* graph = parse(broken, &failure);
    EXPECT_EQ(graph == nullptr, !failure.empty());
    if (graph) {
      ++parsed;
      std::string once = print(graph, TN_PRINT_DATA);
      tn_graph* again = parse(once);
      EXPECT_EQ(print(again, TN_PRINT_DATA), once);
      graphs.release(again);
    }
    graphs.release(graph);
  }
  EXPECT_GT(parsed, 0);
  EXPECT_LT(parsed, 10000);
}

}  // namespace
}  // namespace tenon::host::test
