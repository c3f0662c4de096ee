// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests of what becomes of a graph, without a GPU.

#include "graph_numbers.hpp"
#include "lowering.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon::cuda::test {

// Graphs become plans, which run on the CPU and are compared with the reference.
class Plans : public tenon::test::PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    ASSERT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    ASSERT_EQ(tenon_plugin_load(session_, str("reference")), nullptr);
  }
  OwnedGraph parse(const std::string& text) {
    tn_graph* raw = nullptr;
    Status parsed(services.graph->parse(ctx_, str(text), &raw));
    EXPECT_TRUE(parsed.ok()) << parsed.message();
    return OwnedGraph::take(raw);
  }
  Plan plan_of(const std::string& text, int architecture = 90) {
    graph_ = parse(text);
    Result<Plan> made = lower(import_graph(graph_.get()), {ctx_, architecture});
    if (made.ok()) return std::move(*made);
    ADD_FAILURE() << made.status().message();
    return {};
  }
  static std::vector<std::string> kernels(const Plan& plan) {
    std::vector<std::string> out;
    for (const Step& step : plan.steps)
      out.push_back(step.kernel.substr(0, step.kernel.find("_0")).substr(0, 9));
    return out;
  }
  // Runs on the CPU and compares with the reference; `runs` times, states kept.
  void check(const Plan& plan, int runs = 1, double tolerance = 2e-5) {
    Emulator emulator(folder_.string());
    emulator.add(plan);
    ASSERT_EQ(emulator.build(), "");
    tn_plan* reference = nullptr;
    ASSERT_EQ(tenon_compile(session_, graph_.get(), {}, &reference), nullptr);
    std::vector<Bytes> states;
    for (int run = 0; run < runs; ++run) {
      std::vector<Bytes> inputs = random_inputs(graph_.get(), 3 + static_cast<uint32_t>(run));
      std::vector<DenseView> views;
      std::vector<const DLTensor*> pointers;
      for (size_t i = 0; i < inputs.size(); ++i)
        views.emplace_back(plan.inputs[i].dtype, plan.inputs[i].dims, inputs[i].data());
      for (const DenseView& view : views)
        pointers.push_back(view.get());
      tenon::test::Collected expected(ctx_);
      Status ran(tenon_run(reference, pointers.data(), pointers.size(), &expected.raw, nullptr));
      ASSERT_TRUE(ran.ok()) << ran.message();
      Ran got = run_plan(plan, emulator, inputs, &states);
      ASSERT_EQ(got.outputs.size(), expected.tensors.size());
      for (size_t i = 0; i < got.outputs.size(); ++i) {
        const unsigned char* data = expected.tensors[i].data<unsigned char>();
        Bytes wanted(data, data + got.outputs[i].size());
        EXPECT_LT(difference(got.outputs[i], wanted, plan.outputs[i].dtype), tolerance)
            << "run " << run << " output " << i;
      }
    }
    services.eval->release(reference);
  }

  OwnedGraph graph_;
};

}  // namespace tenon::cuda::test
