// SPDX-License-Identifier: Apache-2.0
// SparseGPT over graphs; its arithmetic has a test of its own.
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

class SparseGpt : public PruningTest {
 protected:
  void build_net() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 3, 6, 6});
      Value h = relu(edit, conv(edit, x, "conv1", {8, 3, 3, 3}), "relu1");
      h = relu(edit, conv(edit, h, "conv2", {8, 4, 3, 3}, {{"group", 2}}), "relu2");
      classify(edit, h, 8);
    });
  }
  std::string samples() { return data("x", {3, 6, 6}, 64, 7); }
  static double zeros(const OwnedGraph& graph, const char* name) {
    Tensor t = graph.view().find(name).constant();
    const auto n = static_cast<size_t>(element_count(t.dl()));
    return static_cast<double>(std::count(t.data<float>(), t.data<float>() + n, 0.0F)) /
           static_cast<double>(n);
  }
  // The squared difference from the model over inputs that nothing was chosen on.
  double away() {
    const std::vector<int64_t> shape{100, 3, 6, 6};
    Floats batch = random(count(shape), 91);
    Floats got = run(result_, shape, batch), wanted = run(model_, shape, batch);
    double sum = 0;
    for (size_t i = 0; i < got.size(); ++i)
      sum += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    return sum;
  }
};

TEST_F(SparseGpt, LosesLessThanTheSameShareBySize) {
  build_net();

  ASSERT_EQ(apply("recovery.sparsegpt", {{"data", samples()}, {"sparsity", 0.5}}), "");

  for (const char* name : {"conv1.w", "conv2.w", "fc.w"})
    EXPECT_NEAR(zeros(result_, name), 0.5, 0.02) << name;
  EXPECT_NEAR(report_["sparsity"].get<double>(), 0.5, 0.02);
  EXPECT_EQ(report_["pruned"].size(), 3u);
  const double ours = away();
  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}}), "");
  EXPECT_LT(ours, 0.7 * away());
}

TEST_F(SparseGpt, PatternsRunAlongTheInputChannelsAtEachTap) {
  build_net();

  ASSERT_EQ(apply("recovery.sparsegpt",
                  {{"data", samples()}, {"pattern", "2:4"}, {"only", {"fc", "conv2"}}}),
            "");

  EXPECT_EQ(zeros(result_, "conv1.w"), 0);
  EXPECT_EQ(zeros(result_, "conv2.w"), 0.5);
  Tensor conv = result_.view().find("conv2.w").constant();
  for (size_t out = 0; out < 8; ++out)
    for (size_t tap = 0; tap < 9; ++tap) {
      size_t n = 0;
      for (size_t channel = 0; channel < 4; ++channel)
        n += conv.data<float>()[(out * 4 + channel) * 9 + tap] == 0;
      EXPECT_EQ(n, 2u) << "output channel " << out << ", tap " << tap;
    }
  Tensor fc = result_.view().find("fc.w").constant();
  for (size_t at = 0; at < 40; at += 4)
    EXPECT_EQ(std::count(fc.data<float>() + at, fc.data<float>() + at + 4, 0.0F), 2);
  EXPECT_EQ(report_["left"][0]["why"], "not in the list of option only");
}

TEST_F(SparseGpt, LeavesLayersWhoseInputAxisDoesNotDivide) {
  build_net();

  ASSERT_EQ(apply("recovery.sparsegpt", {{"data", samples()}, {"pattern", "2:4"}}), "");

  EXPECT_EQ(zeros(result_, "conv1.w"), 0);
  EXPECT_EQ(report_["left"][0]["node"], "conv1");
  EXPECT_EQ(report_["left"][0]["why"], "its input axis of 3 does not divide into groups of 4");
}

TEST_F(SparseGpt, ItsZerosSurviveARefitAndATrainingsOriginalIsTheWholeModel) {
  build_net();
  ASSERT_EQ(apply("recovery.sparsegpt", {{"data", samples()}, {"sparsity", 0.5}}), "");
  std::swap(model_, result_);

  ASSERT_EQ(apply("recovery.refit", {{"data", samples()}}), "");

  EXPECT_NEAR(zeros(result_, "conv1.w"), 0.5, 0.02);
}

TEST_F(SparseGpt, BadOptionsSayWhatWasExpected) {
  build_net();
  EXPECT_THAT(apply("recovery.sparsegpt", {{"data", samples()}, {"pattern", "4:2"}}),
              HasSubstr("option pattern: expected N:M with 0 < N < M, such as 2:4, got '4:2'"));
  EXPECT_THAT(apply("recovery.sparsegpt", {{"data", samples()}, {"only", {"relu1"}}}),
              HasSubstr("no layer can be pruned"));
}

}  // namespace
}  // namespace tenon::test
