// SPDX-License-Identifier: Apache-2.0
// Every operator row's sample that the backend would take: its plan, run on the CPU, against the
// backend "reference"; and all its generated kernels through NVRTC for two architectures.

#include <set>

#include "codegen/compiler.hpp"
#include "graph_numbers.hpp"
#include "lowering.hpp"
#include "plugins/cuda/sample_graph.hpp"

namespace tenon::cuda {
namespace {

using tenon::test::Collected;

struct Case {
  std::string name;
  OwnedGraph graph;
  Plan plan;
};

class Samples : public tenon::test::PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    ASSERT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    ASSERT_EQ(tenon_plugin_load(session_, str("reference")), nullptr);
  }

  std::vector<Case> cases() {
    std::vector<Case> out;
    for (uint64_t row = 0; row < services.op->count(ctx_); ++row) {
      const tn_op* op = services.op->at(ctx_, row);
      for (uint64_t seed = 1; op->sample && seed <= 4; ++seed) {
        OwnedGraph graph = tenon::test::sample_graph(ctx_, op, seed);
        if (!graph.get()) continue;
        Imported imported = import_graph(graph.get());
        bool is_taken = true;
        for (size_t i = 0; i < imported.nodes.size(); ++i)
          is_taken = is_taken && why_not(imported, static_cast<int>(i)).empty();
        if (!is_taken) continue;
        Result<Plan> plan = lower(imported);
        if (!plan.ok()) {
          ADD_FAILURE() << view(op->type) << ": " << plan.status().message();
          continue;
        }
        out.push_back({cat(view(op->type), " seed ", seed), std::move(graph), std::move(*plan)});
      }
    }
    return out;
  }
};

// Empty when the reference cannot run the graph with these numbers.
std::vector<test::Bytes> reference_outputs(tenon_session* session,
                                           tn_ctx* ctx,
                                           const Case& one,
                                           const std::vector<test::Bytes>& inputs) {
  tn_plan* plan = nullptr;
  Status compiled(tenon_compile(session, one.graph.get(), {}, &plan));
  EXPECT_TRUE(compiled.ok()) << compiled.message();
  if (!compiled.ok()) return {};
  std::vector<DenseView> views;
  std::vector<const DLTensor*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i)
    views.emplace_back(one.plan.inputs[i].dtype, one.plan.inputs[i].dims, inputs[i].data());
  for (const DenseView& view : views)
    pointers.push_back(view.get());
  Collected results(ctx);
  Status ran(tenon_run(plan, pointers.data(), pointers.size(), &results.raw, nullptr));
  services.eval->release(plan);
  std::vector<test::Bytes> out;
  for (size_t i = 0; ran.ok() && i < results.tensors.size(); ++i) {
    const unsigned char* data = results.tensors[i].data<unsigned char>();
    const Signature& sign = one.plan.outputs[i];
    out.emplace_back(data, data + bytes_of(sign.dtype, element_count(sign.dims)));
  }
  return out;
}

double tolerance(uint32_t dtype) {
  return dtype == TN_BF16 ? 1e-2 : dtype == TN_F16 ? 2e-3 : 2e-5;
}

TEST_F(Samples, AgreeWithTheReferenceOnTheCpu) {
  std::vector<Case> all = cases();
  test::Emulator emulator(folder_.string());
  std::set<std::string> operators;
  for (const Case& one : all) {
    emulator.add(one.plan);
    operators.insert(one.name.substr(0, one.name.find(' ')));
  }
  ASSERT_EQ(emulator.build(), "");
  for (const Case& one : all) {
    SCOPED_TRACE(one.name);
    std::vector<test::Bytes> inputs = test::random_inputs(one.graph.get(), 7);
    std::vector<test::Bytes> expected = reference_outputs(session_, ctx_, one, inputs);
    if (expected.empty()) continue;
    std::vector<test::Bytes> states;
    test::Ran ran = test::run_plan(one.plan, emulator, inputs, &states);
    ASSERT_EQ(ran.outputs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      uint32_t dtype = one.plan.outputs[i].dtype;
      EXPECT_LT(test::difference(ran.outputs[i], expected[i], dtype), tolerance(dtype))
          << "output " << i;
    }
  }
  std::printf("%zu operators, %zu plans\n", operators.size(), all.size());
  EXPECT_GT(operators.size(), 90u);
}

TEST_F(Samples, CompileForTwoArchitecturesWithoutAGpu) {
  if (Result<CompilerVersion> there = compiler_version(); !there.ok()) {
    GTEST_SKIP() << there.status().message();
  }
  std::set<std::string> known;
  std::string source;
  for (const Case& one : cases()) {
    for (const Step& step : one.plan.steps) {
      const Launch* launch = std::get_if<Launch>(&step.work);
      if (launch && !launch->source.empty() && known.insert(launch->symbol).second) {
        source += launch->source;
      }
    }
  }
  EXPECT_GT(known.size(), 50u);
  for (int architecture : {80, 90}) {
    Result<std::string> made = compile_text(source, architecture);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->substr(1, 3), "ELF");
  }
}

}  // namespace
}  // namespace tenon::cuda
