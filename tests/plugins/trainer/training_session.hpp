// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small models and tables for tests of trainer.train, on the reference backend.

#include <map>

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {

using testing::HasSubstr;

// y = x w + b, two classes.
inline constexpr std::string_view kLinear = R"(graph {
  input %x: f32[n, 2]
  constant %w: f32[2, 2] = [0, 0, 0, 0]
  constant %b: f32[2] = [0, 0]
  %xw: f32[n, 2] = MatMul(%x, %w) @product
  %y: f32[n, 2] = Add(%xw, %b) @sum
  output y = %y
}
)";

class TrainingTest : public PluginTest {
 protected:
  OwnedGraph parse(std::string_view text) {
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
    return OwnedGraph::take(raw);
  }
  // A table with columns a, b (the field x) and label: label 1 where a > b.
  std::string table(int rows) {
    std::string text = "a,b,label\n";
    for (int i = 0; i < rows; ++i) {
      double a = (i * 37 % 101) / 101.0, b = (i * 53 % 103) / 103.0;
      text += std::to_string(a) + "," + std::to_string(b) + "," + (a > b ? "1" : "0") + "\n";
    }
    return write("table.csv", text);
  }
  Component data(const std::string& path) {
    auto made = make("tenon.dataset/1", "datasets.csv", {{"path", path}, {"label", "label"}});
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return std::move(*made);
  }
  Result<OwnedGraph> train(const OwnedGraph& model, const Component& data, json options) {
    if (!options.contains("backend")) options["backend"] = "reference";
    return apply(model, data, options);
  }
  Result<OwnedGraph> apply(const OwnedGraph& model, const Component& data, const json& options) {
    tn_options* given = nullptr;
    TN_CHECK(Status(services.options->create(ctx_, &given)));
    Status set(services.options->parse(given, str(options.dump())));
    auto lend = [&](std::string_view key, const Component& component) {
      tn_any live{TN_ANY_COMPONENT, 0, 1, {.p = component.raw()}};
      if (set.ok()) set = Status(services.options->set(given, str(key), live));
    };
    lend("data", data);
    for (const auto& [key, component] : lent_)
      lend(key, component);
    tn_graph* out = nullptr;
    StringSink report;
    if (set.ok())
      set = Status(tenon_apply(session_, model.get(), str("trainer.train"), given, cancel_,
                               report.get(), &out));
    services.options->release(given);
    TN_CHECK(std::move(set));
    report_ = json::parse(report.text, nullptr, false);
    return OwnedGraph::take(out);
  }
  std::string failure(const OwnedGraph& model, const Component& data, const json& options) {
    auto trained = train(model, data, options);
    return trained.ok() ? "" : text_of(trained.status());
  }
  std::vector<float> weight(const OwnedGraph& graph, std::string_view name) {
    Value value = graph.view().find(name);
    EXPECT_TRUE(value && value.is_constant()) << name;
    if (!value || !value.is_constant()) return {};
    Tensor tensor = value.constant();
    const float* data = tensor.data<float>();
    return {data, data + element_count(tensor.dl())};
  }

  std::map<std::string, Component> lent_;  // options that JSON cannot say
  json report_;
  tn_cancel* cancel_ = nullptr;
};

}  // namespace tenon::test
