// SPDX-License-Identifier: Apache-2.0
#pragma once
// Applies a pass to a graph given as text, and compares numbers before and after.

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {

class FusionTest : public PluginTest {
 protected:
  OwnedGraph parse(const std::string& text) {
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
    return OwnedGraph::take(raw);
  }
  OwnedGraph apply(const OwnedGraph& graph,
                   const std::string& pass,
                   std::string* report = nullptr) {
    StringSink sink;
    tn_graph* out = nullptr;
    EXPECT_EQ(text_of(Status(tenon_apply(session_, graph.get(), str(pass), nullptr, nullptr,
                                         sink.get(), &out))),
              "");
    if (report) *report = sink.text;
    return OwnedGraph::take(out);
  }
  // Empty: it was applied.
  std::string message_of(const OwnedGraph& graph,
                         const std::string& pass,
                         const json& options,
                         OwnedGraph* out) {
    tn_options* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.options->create(ctx_, &raw))), "");
    EXPECT_EQ(text_of(Status(services.options->parse(raw, str(options.dump())))), "");
    tn_graph* made = nullptr;
    std::string message = text_of(
        Status(tenon_apply(session_, graph.get(), str(pass), raw, nullptr, nullptr, &made)));
    services.options->release(raw);
    *out = OwnedGraph::take(made);
    return message;
  }
  static std::string text(const OwnedGraph& graph) {
    StringSink sink;
    EXPECT_EQ(text_of(Status(services.graph->print(graph.get(), TN_PRINT_DATA, sink.get()))), "");
    return sink.text;
  }
  static std::vector<std::string> operators(const OwnedGraph& graph) {
    std::vector<std::string> out;
    for (Node node : graph.view().nodes())
      out.emplace_back(node.type());
    return out;
  }
  // First output on the reference backend; inputs are f32, filled with a fixed sequence.
  std::vector<float> run(const OwnedGraph& graph) {
    tn_plan* plan = nullptr;
    EXPECT_EQ(text_of(Status(
                  tenon_compile(session_, graph.get(), str(R"({"backend": "reference"})"), &plan))),
              "");
    std::vector<Tensor> inputs;
    std::vector<DLTensor> views;
    for (Value v : graph.view().inputs()) {
      auto made = Tensor::zeros(ctx_, v.dtype(), v.type().dims);
      inputs.push_back(*made);
      float* data = inputs.back().data<float>();
      for (int64_t i = 0, n = element_count(inputs.back().dl()); i < n; ++i) {
        data[i] = 0.25f * static_cast<float>(i % 13) - 1.5f;
      }
    }
    for (const Tensor& t : inputs)
      views.push_back(t.dl());
    std::vector<const DLTensor*> in;
    for (const DLTensor& t : views)
      in.push_back(&t);
    Collected out(ctx_);
    EXPECT_EQ(text_of(Status(tenon_run(plan, in.data(), in.size(), &out.raw, nullptr))), "");
    services.eval->release(plan);
    return out.numbers<float>(0);
  }
};

}  // namespace tenon::test
