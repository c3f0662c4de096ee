// SPDX-License-Identifier: Apache-2.0
// ONNX's own single-operator cases (case_archive.hpp; without them: skipped) against their expected
// outputs. TENON_TEST_BACKEND names another backend than cuda. A case that the reference fails as
// well is skipped: it is listed in tests/conformance/expected_failures.txt.

#include "tenon/role/backend.h"

#include "plugins/cuda/case_archive.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon {
namespace {

using tenon::test::Archive;
using tenon::test::difference;
using tenon::test::dims_in;
using tenon::test::dtype_in;
using tenon::test::json;
using tenon::test::variable;

class OnnxCases : public test::PluginTest, public testing::WithParamInterface<size_t> {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    backend_ = variable("TENON_TEST_BACKEND", "cuda");
    Result<Component> made = make("tenon.backend/1", backend_);
    ASSERT_TRUE(made.ok()) << test::text_of(made.status());
    StringSink sink;
    Status asked(made->table<tn_backend>()->devices(made->self(), sink.get()));
    ASSERT_TRUE(asked.ok()) << asked.message();
    for (const json& device : json::parse(sink.text))
      if (device.contains("why")) GTEST_SKIP() << device["why"];
  }

  OwnedGraph load(const json& one) {
    std::filesystem::path path = folder_ / "model.onnx";
    std::ofstream(path, std::ios::binary) << Archive::get().at(one["model"]);
    tn_graph* raw = nullptr;
    Status loaded(tenon_load(session_, str(path.string()), {}, nullptr, &raw));
    why_ = test::text_of(std::move(loaded));
    return OwnedGraph::take(raw);
  }

  // What is wrong with the case on a backend; empty: nothing.
  std::string run(const tn_graph* graph, const json& one, const std::string& backend) {
    tn_plan* plan = nullptr;
    json options = {{"backend", backend}};
    Status compiled(tenon_compile(session_, graph, str(options.dump()), &plan));
    if (!compiled.ok()) return test::text_of(std::move(compiled));
    std::vector<DenseView> views;
    for (const json& input : one["inputs"])
      views.emplace_back(dtype_in(input), dims_in(input), Archive::get().at(input["at"]).data());
    std::vector<const DLTensor*> pointers;
    for (const DenseView& view : views)
      pointers.push_back(view.get());
    test::Collected got(ctx_);
    Status ran(tenon_run(plan, pointers.data(), pointers.size(), &got.raw, nullptr));
    StringSink described;
    if (Status(services.eval->describe(plan, described.get())).ok())
      fallbacks_ = json::parse(described.text)["fallback_nodes"].size();
    services.eval->release(plan);
    if (!ran.ok()) return test::text_of(std::move(ran));
    if (got.tensors.size() != one["outputs"].size()) return "another number of outputs";
    for (size_t i = 0; i < got.tensors.size(); ++i) {
      std::string apart = difference(got.tensors[i].dl(), one["outputs"][i], one);
      if (!apart.empty()) return cat("output ", i, ": ", apart);
    }
    return "";
  }

  static void TearDownTestSuite() {
    std::printf("%d cases pass, %d of them wholly on the device\n", n_passed_, n_whole_);
  }

  std::string backend_, why_;
  size_t fallbacks_ = 0;
  static inline int n_passed_ = 0, n_whole_ = 0;
};

TEST_P(OnnxCases, GiveWhatIsExpected) {
  const json& one = Archive::get().cases[GetParam()];
  OwnedGraph graph = load(one);
  if (!graph.get()) GTEST_SKIP() << "not loaded: " << why_;

  std::string wrong = run(graph.get(), one, backend_);
  if (wrong.empty()) {
    ++n_passed_;
    n_whole_ += fallbacks_ == 0;
    return;
  }
  std::string also = backend_ == "reference" ? wrong : run(graph.get(), one, "reference");
  if (!also.empty()) GTEST_SKIP() << "fails on the reference too: " << also;
  FAIL() << wrong;
}

std::vector<size_t> numbers_of_cases() {
  std::vector<size_t> out;
  for (size_t i = 0; i < Archive::get().cases.size(); ++i)
    out.push_back(i);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Onnx,
                         OnnxCases,
                         testing::ValuesIn(numbers_of_cases()),
                         [](const testing::TestParamInfo<size_t>& param) {
                           return Archive::get().cases[param.param]["name"].get<std::string>();
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnnxCases);

TEST(OnnxCaseFiles, AreGiven) {
  if (Archive::get().cases.empty())
    GTEST_SKIP() << "TENON_TEST_ONNX_CASES names no folder of cases";
}

}  // namespace
}  // namespace tenon
