// SPDX-License-Identifier: Apache-2.0
// Scores by activations, against sums written out by hand.
#include "plugins/datasets/zip_writer.hpp"
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;

constexpr size_t kSamples = 4;

class Wanda : public PruningTest {
 protected:
  std::string data_set(const std::vector<int64_t>& shape, const Floats& all) {
    std::ifstream in(data_of_numbers("x", shape, all), std::ios::binary);
    return write("set.npz", zip({{"x.npy", std::string(std::istreambuf_iterator<char>(in), {})}}));
  }
  Floats numbers(const OwnedGraph& graph, const char* name) {
    Tensor t = graph.view().find(name).constant();
    return {t.data<float>(), t.data<float>() + element_count(t.dl())};
  }
};

TEST_F(Wanda, KeepsASmallWeightOfALargeFeature) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 2});
    auto w = edit.constant<float>(TN_F32, {2, 2}, {1, -2, 3, 5}, "w");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {x, *w}, "fc"))), "");
  });
  // Norms of the features: 20 and 4; scores 20, 40, 12, 20: two of four go, of equals the first.
  std::string data = data_set({kSamples, 2}, {10, 2, 10, -2, -10, 2, 10, 2});

  ASSERT_EQ(apply("pruner.unstructured",
                  {{"importance", "wanda"}, {"data", data}, {"sparsity", 0.5}, {"batch", 4}}),
            "");

  EXPECT_EQ(numbers(result_, "w"), (Floats{0, -2, 0, 5}));
  ASSERT_EQ(apply("pruner.unstructured", {{"importance", "l1"}, {"sparsity", 0.5}}), "");
  EXPECT_EQ(numbers(result_, "w"), (Floats{0, 0, 3, 5}));
}

TEST_F(Wanda, AGroupedConvolutionReadsTheFeaturesOfItsGroup) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 4, 1, 1});
    auto w = edit.constant<float>(TN_F32, {2, 2, 1, 1}, {1, 2, 3, 4}, "w");
    Value y = node(edit, "Conv", {x, *w}, "conv", {{"group", 2}});
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  // Norms 9, 2 | 1, 1: scores 9, 4, 3, 4.
  std::string data = data_set({1, 4, 1, 1}, {9, 2, 1, 1});

  ASSERT_EQ(
      apply("pruner.unstructured", {{"importance", "wanda"}, {"data", data}, {"sparsity", 0.25}}),
      "");

  EXPECT_EQ(numbers(result_, "w"), (Floats{1, 2, 0, 4}));
}

TEST_F(Wanda, AChannelIsWorthItsReadersTimesItsValues) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3});
    auto w1 = edit.constant<float>(TN_F32, {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, "w1");
    auto w2 = edit.constant<float>(TN_F32, {3, 2}, {1, 1, 3, -3, 2, 2}, "w2");
    Value h = relu(edit, node(edit, "MatMul", {x, *w1}, "fc1"), "relu");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {h, *w2}, "fc2"))), "");
  });
  // Behind the Relu the norms are 10, 1, 0: scores 20, 6, 0. By weights alone the second is best.
  std::string data = data_set({2, 3}, {6, 1, -9, 8, -1, -9});

  ASSERT_EQ(apply("pruner.structured",
                  {{"importance", "wanda"}, {"data", data}, {"ratio", 0.67}, {"batch", 2}}),
            "");

  EXPECT_EQ(numbers(result_, "w2"), (Floats{1, 1}));
}

TEST_F(Wanda, TheSpreadOverBatchesGivesTheStandardError) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 2});
    auto w1 = edit.constant<float>(TN_F32, {2, 2}, {1, 0, 0, 1}, "w1");
    auto w2 = edit.constant<float>(TN_F32, {2, 1}, {1, 2}, "w2");
    Value h = node(edit, "MatMul", {x, *w1}, "fc1");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {h, *w2}, "fc2"))), "");
  });
  // Scores of the three batches: 1, 3, 5 and 8, 8, 2.
  std::string data = data_set({3, 2}, {1, 4, -3, 4, 5, -1});

  ASSERT_EQ(apply("pruner.structured",
                  {{"importance", "wanda"}, {"data", data}, {"scores", true}, {"batch", 1}}),
            "");

  json found = group("fc1");
  EXPECT_EQ(found["scores"], json({3, 6}));
  EXPECT_NEAR(found["standard_errors"][0].get<double>(), 2 / std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(found["standard_errors"][1].get<double>(), 2, 1e-6);
}

TEST_F(Wanda, WantsADataSetAndNamesWhatItCannotSee) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 2});
    ASSERT_EQ(
        text_of(edit.output("y", node(edit, "MatMul", {x, weight(edit, "w", {2, 2}, 1)}, "fc"))),
        "");
  });

  EXPECT_THAT(
      apply("pruner.unstructured", {{"importance", "wanda"}}),
      HasSubstr("option data: expected a data set, for an importance that uses activations"));
}

}  // namespace
}  // namespace tenon::test
