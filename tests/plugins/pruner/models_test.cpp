// SPDX-License-Identifier: Apache-2.0
// Real classifiers, where scripts/fetch has put them; run by onednn.
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

class PrunedModel : public PruningTest {
 protected:
  bool load(const std::string& name) {
    std::string path = cat(kSourceFolder, "/.cache/models/", name);
    if (!std::filesystem::exists(path)) return false;
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(tenon_load(session_, str(path), {}, nullptr, &raw))), "");
    model_ = OwnedGraph::take(raw);
    return true;
  }
  Floats answer(const OwnedGraph& graph, const std::vector<int64_t>& shape) {
    tn_plan* plan = nullptr;
    Status compiled(services.eval->compile(ctx_, graph.get(), nullptr, 0,
                                           str("{\"backend\": \"onednn\"}"), &plan));
    EXPECT_EQ(text_of(std::move(compiled)), "");
    Floats numbers = random(count(shape), 5);
    DenseView tensor(TN_F32, shape, numbers.data());
    const DLTensor* in[] = {tensor.get()};
    Collected out(ctx_);
    EXPECT_EQ(text_of(Status(services.eval->run(plan, in, 1, &out.raw, nullptr))), "");
    services.eval->release(plan);
    return out.numbers<float>(0);
  }
  void expect_pruned_equals_masked(const std::vector<int64_t>& shape, json options) {
    for (double ratio : {0.3, 0.6}) {
      options["ratio"] = ratio;
      options["apply"] = "mask";
      ASSERT_EQ(apply("pruner.structured", options), "");
      Floats expected = answer(result_, shape);
      options["apply"] = "remove";
      ASSERT_EQ(apply("pruner.structured", options), "");
      EXPECT_LT(report_["parameters"]["ratio"], 1 - ratio / 2);
      EXPECT_LE(largest_difference(expected, answer(result_, shape)),
                1e-5 * std::max(1.0, largest(expected)));
    }
  }
};

TEST_F(PrunedModel, ResNet50EqualsItsMaskedForm) {
  if (!load("resnet50.onnx")) GTEST_SKIP() << "resnet50.onnx is not there: run scripts/fetch";

  expect_pruned_equals_masked({1, 3, 224, 224}, {{"scope", "local"}});

  EXPECT_EQ(report_["barriers"].size(), 1U);  // the classifier alone
}

TEST_F(PrunedModel, MobileNetV2EqualsItsMaskedForm) {
  if (!load("mobilenet_v2.onnx"))
    GTEST_SKIP() << "mobilenet_v2.onnx is not there: run scripts/fetch";

  expect_pruned_equals_masked({1, 3, 224, 224}, {{"scope", "global"}, {"importance", "l1"}});

  EXPECT_EQ(report_["barriers"].size(), 1U);
}

TEST_F(PrunedModel, SmallClassifiersEqualTheirMaskedForms) {
  struct Case {
    const char* file;
    std::vector<int64_t> shape;
  };
  size_t found = 0;
  for (const Case& one : {Case{"digits_mlp.onnx", {4, 64}}, Case{"crepe_tiny.onnx", {2, 1024}},
                          Case{"ppocr_cls.onnx", {1, 3, 48, 192}}}) {
    if (!load(one.file)) continue;
    SCOPED_TRACE(one.file);
    ++found;
    expect_pruned_equals_masked(one.shape, {{"scope", "local"}});
  }
  if (found == 0) GTEST_SKIP() << "no model is there: run scripts/fetch";
}

}  // namespace
}  // namespace tenon::test
