// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sessions that have loaded the plugin seams, graphs and runs.

#include <cmath>

#include "tenon/sdk/plan.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {

class SeamsTest : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    std::string path = cat(kTestPluginFolder, "/seams/seams.so");
    ASSERT_EQ(text_of(Status(tenon_plugin_load(session_, str(path)))), "");
  }
  OwnedGraph parse(std::string_view text) {
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
    return OwnedGraph::take(raw);
  }
  // What the pass makes of the graph; `lent`: options that JSON cannot say. Any thread.
  Result<OwnedGraph> apply(const OwnedGraph& graph,
                           std::string_view pass,
                           const json& options,
                           const std::map<std::string, const Component*>& lent = {},
                           json* report = nullptr) {
    tn_options* given = nullptr;
    TN_CHECK(Status(services.options->create(ctx_, &given)));
    Status set(services.options->parse(given, str(options.dump())));
    for (const auto& [key, component] : lent) {
      tn_any live{TN_ANY_COMPONENT, 0, 1, {.p = component->raw()}};
      if (set.ok()) set = Status(services.options->set(given, str(key), live));
    }
    tn_graph* out = nullptr;
    StringSink text;
    if (set.ok())
      set = Status(tenon_apply(session_, graph.get(), str(pass), given, nullptr, text.get(), &out));
    services.options->release(given);
    TN_CHECK(std::move(set));
    if (report) *report = json::parse(text.text, nullptr, false);
    return OwnedGraph::take(out);
  }
  template <class T>
  Tensor tensor(uint32_t dtype, const std::vector<int64_t>& shape, const std::vector<T>& values) {
    auto made = Tensor::of<T>(ctx_, dtype, shape, values);
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return *made;
  }
  template <class T>
  std::vector<T> numbers(const Tensor& tensor) {
    const T* data = tensor.data<T>();
    return {data, data + element_count(tensor.dl())};
  }
  std::vector<float> weight(const OwnedGraph& graph, std::string_view name) {
    Value value = graph.view().find(name);
    EXPECT_TRUE(value && value.is_constant()) << name;
    return value && value.is_constant() ? numbers<float>(value.constant()) : std::vector<float>{};
  }
};

}  // namespace tenon::test
