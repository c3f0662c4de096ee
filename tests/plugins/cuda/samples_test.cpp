// SPDX-License-Identifier: Apache-2.0
// Every operator row's sample that the backend would take: its plan, run on the CPU, against the
// backend "reference"; and all its generated kernels through NVRTC for two architectures.

#include <set>

#include "codegen/compiler.hpp"
#include "plan_fixture.hpp"
#include "plugins/cuda/sample_graph.hpp"

namespace tenon::cuda {
namespace {

struct Case {
  std::string name;
  OwnedGraph graph;
  Plan plan;
};

class Samples : public test::Plans {
 protected:
  std::vector<Case> cases() {
    std::vector<Case> out;
    for (uint64_t row = 0; row < services.op->count(ctx_); ++row) {
      const tn_op* op = services.op->at(ctx_, row);
      for (uint64_t seed = 1; op->sample && seed <= 4; ++seed) {
        OwnedGraph graph = tenon::test::sample_graph(ctx_, op, seed);
        if (!graph.get()) continue;
        Imported imported = *import_graph(graph.get());
        bool is_taken = true;
        for (size_t i = 0; i < imported.nodes.size(); ++i)
          is_taken = is_taken && why_not(imported, static_cast<int>(i)).empty();
        if (!is_taken) continue;
        Result<Plan> plan = lower(imported);
        if (!plan.ok()) {
          ADD_FAILURE() << view(op->type) << ": " << plan.status().message();
          continue;
        }
        EXPECT_EQ(test::broken_properties(*plan), std::vector<std::string>{}) << view(op->type);
        out.push_back({cat(view(op->type), " seed ", seed), std::move(graph), std::move(*plan)});
      }
    }
    return out;
  }
};

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
    tn_plan* reference = nullptr;
    ASSERT_EQ(tenon::test::text_of(Status(tenon_compile(
                  session_, one.graph.get(), str(R"({"backend": "reference"})"), &reference))),
              "");
    // The reference may not run a sample with these numbers.
    auto expected = test::reference_outputs(reference, ctx_, one.plan, inputs);
    services.eval->release(reference);
    if (!expected.ok()) continue;
    std::vector<test::Bytes> states;
    compare(one.plan, test::run_plan(one.plan, emulator, inputs, &states), *expected,
            tolerance(one.plan.outputs[0].dtype));
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
