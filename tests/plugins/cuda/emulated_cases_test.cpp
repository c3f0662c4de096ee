// SPDX-License-Identifier: Apache-2.0
// ONNX's own single-operator cases (case_archive.hpp; without them: skipped) as plans that run on
// the CPU: those of which the backend takes every node.

#include <set>

#include "case_archive.hpp"
#include "lowering.hpp"
#include "plan_runner.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon::cuda {
namespace {

using tenon::test::Archive;
using tenon::test::json;

struct Case {
  const json* of;
  Plan plan;
};

class EmulatedCases : public tenon::test::PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    ASSERT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    if (Archive::get().cases.empty())
      GTEST_SKIP() << "TENON_TEST_ONNX_CASES names no folder of cases";
  }

  OwnedGraph load(const json& one) {
    std::filesystem::path path = folder_ / "model.onnx";
    std::ofstream(path, std::ios::binary) << Archive::get().at(one["model"]);
    tn_graph* raw = nullptr;
    Status loaded(tenon_load(session_, str(path.string()), {}, nullptr, &raw));
    return OwnedGraph::take(loaded.ok() ? raw : nullptr);
  }

  // The graph for the case's shapes, refused nodes taken apart; falsy where nodes stay refused.
  OwnedGraph prepared(const json& one) {
    OwnedGraph graph = load(one);
    if (!graph.get()) return graph;
    std::vector<DenseView> views;
    std::vector<tn_type> types;
    std::vector<std::vector<int64_t>> dims;
    for (const json& input : one["inputs"])
      dims.push_back(tenon::test::dims_in(input));
    for (size_t i = 0; i < dims.size(); ++i)
      types.push_back({sizeof(tn_type), TN_KIND_TENSOR, tenon::test::dtype_in(one["inputs"][i]),
                       static_cast<uint32_t>(dims[i].size()), dims[i].data(), nullptr});
    std::vector<const tn_type*> pointers;
    for (const tn_type& type : types)
      pointers.push_back(&type);
    tn_graph* bound = nullptr;
    Status fits(services.graph->bind(graph.get(), pointers.data(), pointers.size(), &bound));
    if (!fits.ok()) return {};
    OwnedGraph out = OwnedGraph::take(bound);
    for (int round = 0; round < 3; ++round) {
      Imported imported = *import_graph(out.get());
      std::set<tn_node_id> refused;
      for (size_t i = 0; i < imported.nodes.size(); ++i)
        if (!why_not(imported, static_cast<int>(i)).empty())
          refused.insert(imported.nodes[i].source.id);
      if (refused.empty()) return out;
      Result<Edit> edit = Edit::begin(out.get());
      if (!edit.ok()) return {};
      for (tn_node_id id : refused) {
        const tn_op* row = services.op->of(out.get(), id);
        if (row && row->decompose) Status ignored(services.op->decompose(edit->raw, id));
      }
      if (!edit->commit().ok()) return {};
    }
    return {};
  }
};

TEST_F(EmulatedCases, GiveWhatIsExpected) {
  std::vector<Case> all;
  std::vector<OwnedGraph> graphs;  // plans point into them
  test::Emulator emulator(folder_.string());
  for (const json& one : Archive::get().cases) {
    if (one["listed"]) continue;  // no backend gives what it expects, with a reason in the list
    OwnedGraph graph = prepared(one);
    if (!graph.get()) continue;
    Result<Plan> plan = lower(*import_graph(graph.get()), {ctx_});
    ASSERT_TRUE(plan.ok()) << one["name"] << plan.status().message();
    if (plan->inputs.size() != one["inputs"].size()) continue;  // an empty optional
    emulator.add(*plan);
    all.push_back({&one, std::move(*plan)});
    graphs.push_back(std::move(graph));
  }
  ASSERT_EQ(emulator.build(), "");
  for (const Case& one : all) {
    SCOPED_TRACE((*one.of)["name"].get<std::string>());
    std::vector<test::Bytes> inputs, states;
    for (const json& input : (*one.of)["inputs"]) {
      std::string_view bytes = Archive::get().at(input["at"]);
      inputs.emplace_back(bytes.begin(), bytes.end());
    }
    test::Ran ran = test::run_plan(one.plan, emulator, inputs, &states);
    const json& wanted = (*one.of)["outputs"];
    ASSERT_EQ(ran.outputs.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      DenseView got(one.plan.outputs[i].dtype, one.plan.outputs[i].dims, ran.outputs[i].data());
      EXPECT_EQ(tenon::test::difference(*got, wanted[i], *one.of), "") << "output " << i;
    }
  }
  std::printf("%zu of %zu cases\n", all.size(), Archive::get().cases.size());
  EXPECT_GT(all.size(), 0u);
}

}  // namespace
}  // namespace tenon::cuda
