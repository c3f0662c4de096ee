// SPDX-License-Identifier: Apache-2.0
// Shapes that a file declares where only the data say them: right or wrong, the answers are those
// of the model, whatever the backend made of the declaration.
#include <gmock/gmock.h>

#include "both_backends.hpp"

namespace tenon::test {
namespace {

struct Node {
  const char* name;
  const char* text;  // %y = ... of %x: f32[4, 1, 4] and %p; shapes of outputs as $
  std::vector<std::string> parameters;
};

const Node kNodes[] = {
    {"Reshape", "%y: $ = Reshape(%x, %p) @n", {"8, 2", "2, -1", "0, -1", "16", "2, 2, 4"}},
    {"Expand", "%y: $ = Expand(%x, %p) @n", {"3, 1", "1", "4, 2, 4", "2, 4, 1, 4"}},
    {"Squeeze", "%y: $ = Squeeze(%x, %p) @n", {"1", "-2"}},
    {"Unsqueeze", "%y: $ = Unsqueeze(%x, %p) @n", {"0", "3", "0, 1"}},
    {"Split", "%y: $, %w: $ = Split(%x, %p) {axis = 0} @n", {"1, 3", "2, 2"}},
    {"Tile", "%y: $ = Tile(%x, %p) @n", {"1, 2, 1", "2, 1, 3"}},
    {"Sum", "%y: $ = ReduceSum(%x, %p) {keepdims = 0} @n", {"0", "0, 2", "-1"}},
    {"Slice", "%y: $ = Slice(%x, %p, %x_end, %p) @n", {"0", "1", "2"}},
    {"Range", "%y: $ = ConstantOfShape(%p) @n", {"2, 3", "4"}},
};

const char* const kShapes[] = {
    "f32[?, ?]",       "f32[2, 8]",    "f32[8, 2]",    "f32[1, 4]",
    "f32[4, 2, 4]",    "f32[4, 3, 4]", "f32[4, 4]",    "f32[1, 4, 1, 4]",
    "f32[4, 1, 4, 1]", "f32[1, 1, 4]", "f32[2, 1, 4]", "f32[]",
    "f32[0]",          "f32[100, 7]",  "f32[16]",      "f32[4, 2, 4, 1, 1]"};

std::string graph_of(const Node& node, const std::string& parameter, const std::string& shape) {
  std::string count = std::to_string(std::count(parameter.begin(), parameter.end(), ',') + 1);
  std::string zeros = "0";
  for (int i = 1; i < std::stoi(count); ++i)
    zeros += ", 0";
  std::string text = node.text;
  for (size_t at; (at = text.find('$')) != std::string::npos;)
    text.replace(at, 1, shape);
  return "graph {\n  input %x: f32[4, 1, 4]\n  input %r: i64[" + count + "]\n  constant %z: i64[" +
         count + "] = [" + zeros + "]\n  constant %c: i64[" + count + "] = [" + parameter +
         "]\n  constant %x_end: i64[1] = [4]\n  %m: i64[" + count +
         "] = Mul(%r, %z) @m\n  %p: i64[" + count + "] = Add(%m, %c) @p\n  " + text +
         "\n  %t: f32[*] = Exp(%y) @t\n  output y = %t\n}";
}

class DeclaredShape : public BothBackends, public testing::WithParamInterface<Node> {};

TEST_P(DeclaredShape, ChangesNoAnswer) {
  int n_contradicted = 0;
  for (const std::string& parameter : GetParam().parameters) {
    Outcome expected =
        run(parse(graph_of(GetParam(), parameter, "f32[*]")), {{"backend", "reference"}});
    ASSERT_EQ(expected.error, "") << parameter;
    for (const char* shape : kShapes) {
      SCOPED_TRACE(testing::Message() << shape << " for " << parameter);
      tn_graph* raw = nullptr;
      std::string refused = text_of(
          Status(services.graph->parse(ctx_, str(graph_of(GetParam(), parameter, shape)), &raw)));
      if (!refused.empty()) continue;  // inference knows better
      OwnedGraph graph = OwnedGraph::take(raw);
      for (const char* backend : {"onednn", "reference"}) {
        Outcome got = run(graph, {{"backend", backend}});
        ASSERT_EQ(got.error, "") << backend;
        ASSERT_EQ(got.outputs.size(), expected.outputs.size());
        expect_near(got.outputs[0], expected.outputs[0], 2e-5);
      }
      ++n_contradicted;
    }
  }
  EXPECT_GT(n_contradicted, 0);
}

INSTANTIATE_TEST_SUITE_P(Nodes, DeclaredShape, testing::ValuesIn(kNodes), [](const auto& test) {
  return std::string(test.param.name);
});

}  // namespace
}  // namespace tenon::test
