// SPDX-License-Identifier: Apache-2.0
// Networks some of whose channels are sums of others: once these are removed, refitted weights must
// make the same outputs again.
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

class Refit : public PruningTest {
 protected:
  Value constant(EditView edit,
                 std::string_view name,
                 const std::vector<int64_t>& shape,
                 const Floats& numbers) {
    auto made = edit.constant<float>(TN_F32, shape, numbers, name);
    EXPECT_TRUE(made.ok());
    return *made;
  }
  // Filters [n, each]: those from `first` on are sums of the first two, and small.
  Floats dependent(int64_t n, int64_t each, int64_t first, uint64_t seed) {
    Floats out = random(static_cast<size_t>(n * each), seed, 0.5F);
    for (int64_t o = first; o < n; ++o)
      for (int64_t i = 0; i < each; ++i)
        out[static_cast<size_t>(o * each + i)] =
            0.2F * out[static_cast<size_t>(i)] - 0.1F * out[static_cast<size_t>(each + i)];
    return out;
  }
  // Prunes model_, and refits the result: both results' largest difference from the model, over
  // its largest output.
  std::pair<double, double> before_and_after(const std::vector<int64_t>& sample, json pruning) {
    std::vector<int64_t> shape = sample;
    shape.insert(shape.begin(), 5);
    Floats batch = random(count(shape), 91);
    Floats wanted = run(model_, shape, batch);
    pruning["importance_options"] = {{"reads", false}};
    EXPECT_EQ(apply("pruner.structured", pruning), "");
    double before = largest_difference(run(result_, shape, batch), wanted) / largest(wanted);
    std::swap(model_, result_);
    EXPECT_EQ(apply("recovery.refit", {{"data", data("x", sample, 64, 7)}, {"damping", 1e-9}}), "");
    double after = largest_difference(run(result_, shape, batch), wanted) / largest(wanted);
    return {before, after};
  }
  json row(std::string_view list, std::string_view node) {
    for (const json& one : report_[list])
      if (one["node"] == node) return one;
    return {};
  }
};

TEST_F(Refit, AProductReadsWhatRemovedUnitsDependOn) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 6});
    Value h =
        node(edit, "Gemm",
             {x, constant(edit, "w1", {8, 6}, dependent(8, 6, 5, 1)), weight(edit, "b1", {8}, 2)},
             "fc1", {{"transB", 1}});
    Value y = node(edit, "MatMul", {h, weight(edit, "w2", {8, 3}, 3)}, "fc2");
    y = node(edit, "Add", {y, weight(edit, "b2", {3}, 4)}, "bias");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  auto [before, after] = before_and_after({6}, {{"ratio", 0.375}});

  EXPECT_GT(before, 0.02);
  EXPECT_LT(after, 1e-5);
  EXPECT_LT(row("refitted", "fc2")["error"]["after"], 1e-8);
}

TEST_F(Refit, AConvolutionWithStridesAndPaddingDoesAsWell) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 9, 8});
    Value h = node(edit, "Conv",
                   {x, constant(edit, "w1", {6, 3, 1, 1}, dependent(6, 3, 4, 1)),
                    constant(edit, "b1", {6}, Floats(6, 0))},
                   "conv1");
    h = conv(edit, h, "conv2", {4, 6, 3, 2},
             {{"strides", std::vector<int64_t>{2, 1}},
              {"pads", std::vector<int64_t>{1, 0, 1, 1}},
              {"dilations", std::vector<int64_t>{1, 2}}});
    classify(edit, relu(edit, h, "relu"), 4);
  });

  auto [before, after] = before_and_after({3, 9, 8}, {{"layers", {{"conv1", 0.34}}}, {"ratio", 0}});

  EXPECT_GT(before, 0.005);
  EXPECT_LT(after, 1e-5);
}

TEST_F(Refit, AConvolutionInGroupsIsFittedGroupByGroup) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 4, 5, 5});
    Floats w = random(4 * 2 * 9, 1, 0.5F);
    Value h =
        node(edit, "Conv", {x, constant(edit, "w1", {4, 2, 3, 3}, w), weight(edit, "b1", {4}, 3)},
             "grouped", {{"group", 2}});
    classify(edit, h, 4);
  });
  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0}}), "");
  std::swap(model_, result_);
  // Spoilt weights, which only the original knows better.
  build([&](EditView edit) {
    Value w1 = edit.graph().find("w1");
    ASSERT_EQ(text_of(Status(services.edit->set_value_name(edit.raw, w1.id, str("old")))), "");
    ASSERT_EQ(text_of(edit.replace(w1, weight(edit, "w1", {4, 2, 3, 3}, 99))), "");
  });
  std::vector<int64_t> shape{3, 4, 5, 5};
  Floats batch = random(count(shape), 4);
  ASSERT_EQ(apply("recovery.refit", {{"data", data("x", {4, 5, 5}, 64, 7)}, {"damping", 1e-9}}),
            "");

  Tensor found = result_.view().find("w1").constant();
  Floats w = random(4 * 2 * 9, 1, 0.5F);
  EXPECT_LT(largest_difference({found.data<float>(), found.data<float>() + w.size()}, w), 1e-4);
}

TEST_F(Refit, TheLastLayerOfABlockMakesUpForTheWayAroundIt) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 3, 6, 6});
    Value h = conv(edit, x, "stem", {4, 3, 1, 1});
    Value wide = node(edit, "Conv",
                      {h, constant(edit, "wide.w", {6, 4, 1, 1}, dependent(6, 4, 4, 1)),
                       constant(edit, "wide.b", {6}, Floats(6, 0))},
                      "wide");
    Value back = conv(edit, wide, "back", {4, 6, 1, 1});
    classify(edit, node(edit, "Add", {back, h}, "sum"), 4);
  });

  auto [before, after] = before_and_after({3, 6, 6}, {{"layers", {{"wide", 0.34}}}, {"ratio", 0}});

  EXPECT_GT(before, 0.005);
  EXPECT_LT(after, 1e-5);
}

TEST_F(Refit, WhatItCannotFitIsLeftWithTheReason) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 4, 4, 4});
    Value h = conv(edit, x, "conv", {4, 4, 3, 3}, {{"auto_pad", std::string_view("SAME_UPPER")}});
    classify(edit, h, 4);
  });
  std::string samples = data("x", {4, 4, 4}, 32, 7);
  EXPECT_THAT(apply("recovery.refit", {{"data", samples}}),
              HasSubstr("expected a model that still knows its original"));
  ASSERT_EQ(apply("pruner.structured", {{"ratio", 0.25}}), "");
  std::swap(model_, result_);

  ASSERT_EQ(apply("recovery.refit", {{"data", samples}, {"skip", {"fc"}}}), "");

  EXPECT_THAT(row("left", "conv")["why"].get<std::string>(),
              HasSubstr("its padding is SAME_UPPER"));
  EXPECT_EQ(row("left", "fc")["why"], "in the skip list (fc)");
}

TEST_F(Refit, AWeightBehindAMaskIsLeftWithTheReason) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 6});
    Value y = node(edit, "MatMul", {x, weight(edit, "w", {6, 8}, 1)}, "fc");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  ASSERT_EQ(apply("pruner.unstructured", {{"apply", "nodes"}}), "");
  std::swap(model_, result_);

  ASSERT_EQ(apply("recovery.refit", {{"data", data("x", {6}, 32, 7)}}), "");

  EXPECT_EQ(row("left", "fc")["why"],
            "its weight is computed from constants: apply fusion.default first");
}

// Half of the weights are zero: they stay so, the others make up for some of them.
TEST_F(Refit, ZerosOfSingleWeightsStay) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 6});
    Value h = node(edit, "MatMul", {x, weight(edit, "w1", {6, 8}, 1)}, "fc1");
    Value y = node(edit, "MatMul", {h, weight(edit, "w2", {8, 3}, 3)}, "fc2");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  Floats batch = random(100 * 6, 91), wanted = run(model_, {100, 6}, batch);
  auto missed = [&](const OwnedGraph& graph) {
    Floats got = run(graph, {100, 6}, batch);
    double sum = 0;
    for (size_t i = 0; i < got.size(); ++i)
      sum += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    return sum;
  };
  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}}), "");
  std::swap(model_, result_);
  auto zeros = [](const OwnedGraph& graph, const char* name) {
    Tensor t = graph.view().find(name).constant();
    std::vector<bool> out;
    for (int64_t i = 0; i < element_count(t.dl()); ++i)
      out.push_back(t.data<float>()[i] == 0);
    return out;
  };
  const double before = missed(model_);
  json options{{"data", data("x", {6}, 64, 7)}, {"damping", 1e-9}};

  ASSERT_EQ(apply("recovery.refit", options), "");

  EXPECT_LT(missed(result_), 0.7 * before);
  for (const char* name : {"w1", "w2"})
    EXPECT_EQ(zeros(result_, name), zeros(model_, name)) << name;

  options["zeros"] = "fill";
  ASSERT_EQ(apply("recovery.refit", options), "");

  EXPECT_LT(missed(result_), 1e-6 * before);
  EXPECT_NE(zeros(result_, "w1"), zeros(model_, "w1"));
}

TEST_F(Refit, PrunedTwiceTheFirstModelIsTheTarget) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 6});
    Value h = node(edit, "Gemm",
                   {x, constant(edit, "w1", {8, 6}, dependent(8, 6, 4, 1)),
                    constant(edit, "b1", {8}, Floats(8, 0))},
                   "fc1", {{"transB", 1}});
    Value y =
        node(edit, "Gemm", {h, weight(edit, "w2", {8, 3}, 3), weight(edit, "b2", {3}, 4)}, "fc2");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });
  std::vector<int64_t> shape{5, 6};
  Floats batch = random(count(shape), 91), wanted = run(model_, shape, batch);
  json pruning{{"ratio", 0.25}, {"importance_options", {{"reads", false}}}};
  ASSERT_EQ(apply("pruner.structured", pruning), "");
  std::swap(model_, result_);

  before_and_after({6}, pruning);

  EXPECT_GT(largest_difference(run(model_, shape, batch), wanted) / largest(wanted), 0.02);
  EXPECT_LT(largest_difference(run(result_, shape, batch), wanted) / largest(wanted), 1e-5);
}

}  // namespace
}  // namespace tenon::test
