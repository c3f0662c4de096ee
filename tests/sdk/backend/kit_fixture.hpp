// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graphs given as text, as the backend kit reads them.

#include "tenon/sdk/backend/compile.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {

class BackendKit : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    ASSERT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
  }
  // A graph with these lines between its braces.
  const tn_graph* parse(const std::string& lines) {
    tn_graph* raw = nullptr;
    Status parsed(services.graph->parse(ctx_, str("graph {\n" + lines + "\n}\n"), &raw));
    EXPECT_EQ(text_of(parsed), "") << lines;
    parsed_.push_back(OwnedGraph::take(raw));
    return raw;
  }
  backend::Graph import(const std::string& lines) {
    Result<backend::Graph> made = backend::import_graph(parse(lines));
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }
  static int find(const backend::Graph& graph, std::string_view value) {
    for (size_t i = 0; i < graph.values.size(); ++i)
      if (graph.values[i].name == value) return static_cast<int>(i);
    ADD_FAILURE() << "no value " << value;
    return backend::kNone;
  }
  static int find_node(const backend::Graph& graph, std::string_view name) {
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].name == name) return static_cast<int>(i);
    ADD_FAILURE() << "no node " << name;
    return backend::kNone;
  }

 private:
  std::vector<OwnedGraph> parsed_;
};

}  // namespace tenon::test
