// SPDX-License-Identifier: Apache-2.0
// Real classifiers, where scripts/fetch has put them; run by onednn.
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

const std::vector<int64_t> kPhoto{1, 3, 224, 224};

class PrunedModel : public PruningTest {
 protected:
  bool load(const std::string& name) {
    std::string path = cat(TENON_TEST_MODEL_DIR, "/", name);
    if (!std::filesystem::exists(path)) return false;
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(tenon_load(session_, str(path), {}, nullptr, &raw))), "");
    model_ = OwnedGraph::take(raw);
    return true;
  }
  Floats logits(const OwnedGraph& graph) {
    tn_plan* plan = nullptr;
    Status compiled(services.eval->compile(ctx_, graph.get(), nullptr, 0,
                                           str("{\"backend\": \"onednn\"}"), &plan));
    EXPECT_EQ(text_of(std::move(compiled)), "");
    Floats photo = random(count(kPhoto), 5);
    DenseView tensor(TN_F32, kPhoto, photo.data());
    const DLTensor* in[] = {tensor.get()};
    Collected out(ctx_);
    EXPECT_EQ(text_of(Status(services.eval->run(plan, in, 1, &out.raw, nullptr))), "");
    services.eval->release(plan);
    return out.numbers<float>(0);
  }
  void expect_pruned_equals_masked(json options) {
    for (double ratio : {0.3, 0.6}) {
      options["ratio"] = ratio;
      options["apply"] = "mask";
      ASSERT_EQ(apply("pruner.structured", options), "");
      Floats expected = logits(result_);
      options["apply"] = "remove";
      ASSERT_EQ(apply("pruner.structured", options), "");
      EXPECT_LT(report_["macs"]["ratio"], 1 - ratio);
      EXPECT_LE(largest_difference(expected, logits(result_)), 1e-5 * largest(expected));
    }
  }
};

TEST_F(PrunedModel, ResNet50EqualsItsMaskedForm) {
  if (!load("resnet50.onnx")) GTEST_SKIP() << "resnet50.onnx is not there: run scripts/fetch";

  expect_pruned_equals_masked({{"scope", "local"}});

  EXPECT_EQ(report_["barriers"].size(), 1U);  // the classifier alone
}

TEST_F(PrunedModel, MobileNetV2EqualsItsMaskedForm) {
  if (!load("mobilenet_v2.onnx"))
    GTEST_SKIP() << "mobilenet_v2.onnx is not there: run scripts/fetch";

  expect_pruned_equals_masked({{"scope", "global"}, {"importance", "l1"}});

  EXPECT_EQ(report_["barriers"].size(), 1U);
}

}  // namespace
}  // namespace tenon::test
