// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests of what becomes of a graph, without a GPU.

#include <functional>

#include "graph_numbers.hpp"
#include "lowering.hpp"
#include "plan_properties.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon::cuda::test {

// What a plan of the reference gives for these inputs of `plan`, which is of the same graph.
inline Result<std::vector<Bytes>> reference_outputs(tn_plan* reference,
                                                    tn_ctx* ctx,
                                                    const Plan& plan,
                                                    const std::vector<Bytes>& inputs) {
  std::vector<DenseView> views;
  std::vector<const DLTensor*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i)
    views.emplace_back(plan.inputs[i].dtype, plan.inputs[i].dims, inputs[i].data());
  for (const DenseView& view : views)
    pointers.push_back(view.get());
  tenon::test::Collected results(ctx);
  TN_CHECK(tenon_run(reference, pointers.data(), pointers.size(), &results.raw, nullptr));
  std::vector<Bytes> out;
  for (size_t i = 0; i < results.tensors.size(); ++i) {
    const unsigned char* data = results.tensors[i].data<unsigned char>();
    const Signature& sign = plan.outputs[i];
    out.emplace_back(data, data + bytes_of(sign.dtype, element_count(sign.dims)));
  }
  return out;
}

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
    return plan_for({ctx_, architecture});
  }
  // Of the graph of the last plan.
  Plan plan_for(const Target& target) {
    Result<Plan> made = lower(*import_graph(graph_.get()), target);
    if (!made.ok()) {
      ADD_FAILURE() << made.status().message();
      return {};
    }
    EXPECT_EQ(broken_properties(*made), std::vector<std::string>{});
    return std::move(*made);
  }
  static std::vector<std::string> kernels(const Plan& plan) {
    std::vector<std::string> out;
    for (const Step& step : plan.steps)
      out.push_back(step.kernel.substr(0, step.kernel.find("_0")).substr(0, 9));
    return out;
  }
  // On random inputs; `runs` times, states kept.
  void check(const Plan& plan, int runs = 1, double tolerance = 2e-5) {
    Numbers numbers;
    numbers.inputs = [&](int run) {
      return random_inputs(graph_.get(), 3 + static_cast<uint32_t>(run));
    };
    check_with(numbers, plan, graph_.get(), runs, tolerance);
  }

  // What a graph is run with; states: set in the reference too. None: zeros.
  struct Numbers {
    std::function<std::vector<Bytes>(int run)> inputs;
    std::function<std::vector<Bytes>(tn_plan* reference)> states = {};
  };
  void check_with(
      const Numbers& numbers, const Plan& plan, const tn_graph* graph, int runs, double tolerance) {
    ASSERT_EQ(broken_properties(plan), std::vector<std::string>{});
    Emulator emulator(folder_.string());
    emulator.add(plan);
    ASSERT_EQ(emulator.build(), "");
    tn_plan* reference = nullptr;
    ASSERT_EQ(tenon::test::text_of(Status(
                  tenon_compile(session_, graph, str(R"({"backend": "reference"})"), &reference))),
              "");
    std::vector<Bytes> states;
    if (numbers.states) states = numbers.states(reference);
    for (int run = 0; run < runs; ++run) {
      SCOPED_TRACE(cat("run ", run));
      std::vector<Bytes> inputs = numbers.inputs(run);
      Result<std::vector<Bytes>> expected = reference_outputs(reference, ctx_, plan, inputs);
      ASSERT_TRUE(expected.ok()) << tenon::test::text_of(expected.status());
      compare(plan, run_plan(plan, emulator, inputs, &states), *expected, tolerance);
    }
    services.eval->release(reference);
  }
  static void compare(const Plan& plan,
                      const Ran& got,
                      const std::vector<Bytes>& expected,
                      double tolerance) {
    EXPECT_EQ(got.fault, 0u);
    ASSERT_EQ(got.outputs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(difference(got.outputs[i], expected[i], plan.outputs[i].dtype), tolerance)
          << "output " << plan.outputs[i].name;
    }
  }

  OwnedGraph graph_;
};

}  // namespace tenon::cuda::test
