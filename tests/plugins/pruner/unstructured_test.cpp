// SPDX-License-Identifier: Apache-2.0
#include "plugins/pruner/pruning_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Unstructured : public PruningTest {
 protected:
  // x [batch, 4] -> a [4, 2] -> b [2, 2] -> y
  void build_two() {
    build([&](EditView edit) {
      Value x = input(edit, "x", {-1, 4});
      auto a = edit.constant<float>(TN_F32, {4, 2}, {1, -8, 2, 7, -3, 6, 4, 5}, "a");
      auto b = edit.constant<float>(TN_F32, {2, 2}, {10, 20, -30, 40}, "b");
      Value h = node(edit, "MatMul", {x, *a}, "first");
      Value bias = node(edit, "Add", {h, weight(edit, "bias", {2}, 3)}, "add");
      ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {bias, *b}, "second"))), "");
    });
  }
  Floats numbers(const OwnedGraph& graph, const char* name) {
    Tensor t = graph.view().find(name).constant();
    return {t.data<float>(), t.data<float>() + element_count(t.dl())};
  }
  // A pass that takes a model as an option.
  std::string apply_to(const char* id,
                       const OwnedGraph& graph,
                       const OwnedGraph& to,
                       const json& more) {
    tn_options* given = nullptr;
    Status made(services.options->create(ctx_, &given));
    Status parsed(services.options->parse(given, str(more.dump())));
    Status set(services.options->set(given, str("to"), any_graph(to.get())));
    EXPECT_TRUE(made.ok() && parsed.ok() && set.ok());
    StringSink report;
    tn_graph* out = nullptr;
    Status status(tenon_apply(session_, graph.get(), str(id), given, nullptr, report.get(), &out));
    services.options->release(given);
    result_ = OwnedGraph::take(out);
    report_ = report.text.empty() ? json() : json::parse(report.text);
    return text_of(std::move(status));
  }
};

TEST_F(Unstructured, ZeroesTheSmallestOfEachLayer) {
  build_two();

  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}}), "");

  EXPECT_THAT(numbers(result_, "a"), ElementsAre(0, -8, 0, 7, 0, 6, 0, 5));
  EXPECT_THAT(numbers(result_, "b"), ElementsAre(0, 0, -30, 40));
  EXPECT_EQ(numbers(result_, "bias"), numbers(model_, "bias"));
  EXPECT_EQ(report_["sparsity"], 0.5);
  EXPECT_EQ(report_["nonzero"]["before"], 14);
  EXPECT_EQ(report_["nonzero"]["after"], 8);
}

TEST_F(Unstructured, GlobalScopeComparesLayers) {
  build_two();

  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}, {"scope", "global"}}), "");

  EXPECT_THAT(numbers(result_, "a"), ElementsAre(0, -8, 0, 7, 0, 0, 0, 0));
  EXPECT_THAT(numbers(result_, "b"), ElementsAre(10, 20, -30, 40));
}

TEST_F(Unstructured, TwoOfFourStayAlongTheInputAxis) {
  build_two();

  ASSERT_EQ(apply("pruner.unstructured", {{"pattern", "2:4"}}), "");

  EXPECT_THAT(numbers(result_, "a"), ElementsAre(0, -8, 0, 7, -3, 0, 4, 0));  // by column
  EXPECT_EQ(numbers(result_, "b"), numbers(model_, "b"));
  EXPECT_EQ(report_["skipped"][0]["why"], "its input axis of 2 does not divide into groups of 4");
}

TEST_F(Unstructured, APatternBringsNoPrunedWeightBack) {
  build_two();
  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.75}, {"only", "first"}}), "");
  std::swap(model_, result_);

  ASSERT_EQ(apply("pruner.unstructured", {{"pattern", "2:4"}, {"apply", "nodes"}}), "");

  EXPECT_EQ(report_["weights"][0]["zeros"], 6);
  EXPECT_EQ(report_["nonzero"]["before"], report_["nonzero"]["after"]);
  Tensor mask = result_.view().find("a_mask").constant();
  EXPECT_EQ(std::count(mask.data<uint8_t>(), mask.data<uint8_t>() + 8, 1), 2);
}

TEST_F(Unstructured, WhatIsSkippedKeepsItsMask) {
  build_two();
  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}, {"apply", "nodes"}}), "");
  std::swap(model_, result_);

  for (const char* how : {"zero", "nodes"}) {
    ASSERT_EQ(
        apply("pruner.unstructured", {{"sparsity", 0.75}, {"apply", how}, {"skip", {"second"}}}),
        "");

    Value b = result_.view().find("b");
    EXPECT_TRUE(b.consumer_count() == 1 && b.consumer(0).is("Mul")) << how;
    ASSERT_TRUE(result_.view().find("b_mask")) << how;
    Tensor mask = result_.view().find("b_mask").constant();
    EXPECT_THAT(std::vector<uint8_t>(mask.data<uint8_t>(), mask.data<uint8_t>() + 4),
                ElementsAre(0, 0, 1, 1))
        << how;
    EXPECT_EQ(static_cast<bool>(result_.view().find("a_mask")), how == std::string("nodes"));
  }
}

TEST_F(Unstructured, ConvolutionsKeepTwoOfFourInputChannels) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {1, 8, 4, 4});
    ASSERT_EQ(text_of(edit.output("y", conv(edit, x, "c", {3, 8, 3, 3}))), "");
  });

  ASSERT_EQ(apply("pruner.unstructured", {{"pattern", "2:4"}}), "");

  Floats w = numbers(result_, "c.w");
  for (size_t out = 0; out < 3; ++out)
    for (size_t group = 0; group < 2; ++group)
      for (size_t pixel = 0; pixel < 9; ++pixel) {
        size_t stay = 0;
        for (size_t k = 0; k < 4; ++k)
          stay += w[(out * 8 + group * 4 + k) * 9 + pixel] != 0;
        EXPECT_EQ(stay, 2U);
      }
}

TEST_F(Unstructured, BlocksGoWhole) {
  build([&](EditView edit) {
    Value x = input(edit, "x", {1, 6, 4, 4});
    ASSERT_EQ(text_of(edit.output("y", conv(edit, x, "c", {10, 6, 1, 1}))), "");
  });

  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}, {"block", "4x2"}}), "");

  Floats before = numbers(model_, "c.w"), after = numbers(result_, "c.w");
  double least_kept = 1e30, most_gone = 0;
  size_t zeros = 0;
  for (size_t first = 0; first < 10; first += 4) {
    for (size_t read = 0; read < 6; read += 2) {
      size_t kept = 0, size = 0;
      double sum = 0;
      for (size_t out = first; out < std::min<size_t>(10, first + 4); ++out)
        for (size_t in = read; in < read + 2; ++in, ++size) {
          kept += after[out * 6 + in] != 0;
          sum += std::fabs(static_cast<double>(before[out * 6 + in]));
        }
      EXPECT_TRUE(kept == 0 || kept == size) << first << " " << read;
      double& bound = kept == 0 ? most_gone : least_kept;
      const double mean = sum / static_cast<double>(size);
      bound = kept == 0 ? std::max(bound, mean) : std::min(bound, mean);
      zeros += size - kept;
    }
  }
  EXPECT_LT(most_gone, least_kept);
  EXPECT_LE(zeros, 30U);  // half of 60, in whole blocks of 8, or 4 at the edge
  EXPECT_GT(zeros, 22U);
}

TEST_F(Unstructured, BlocksCompareOverLayers) {
  build_two();

  ASSERT_EQ(
      apply("pruner.unstructured", {{"sparsity", 0.5}, {"scope", "global"}, {"block", "2x1"}}), "");

  Floats a = numbers(result_, "a");
  for (size_t i = 0; i < a.size(); i += 2)
    EXPECT_EQ(a[i] == 0, a[i + 1] == 0) << i;
  EXPECT_THAT(numbers(result_, "b"), ElementsAre(10, 20, -30, 40));
}

TEST_F(Unstructured, MaskNodesAnswerAsZerosDo) {
  build_two();
  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}}), "");
  Floats batch = random(3 * 4, 5), expected = run(result_, {3, 4}, batch);

  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}, {"apply", "nodes"}}), "");

  EXPECT_EQ(run(result_, {3, 4}, batch), expected);
  EXPECT_EQ(numbers(result_, "a"), numbers(model_, "a"));  // behind the mask
  EXPECT_EQ(count_ops("Mul"), 2U);
  EXPECT_EQ(report_["nonzero"]["after"], 8);
}

TEST_F(Unstructured, WhatWasPrunedStaysPruned) {
  build_two();
  json options{
      {"sparsity", 0.25}, {"apply", "nodes"}, {"relative", true}, {"importance", "random"}};
  ASSERT_EQ(apply("pruner.unstructured", options), "");
  Floats first = numbers(result_, "a");
  EXPECT_DOUBLE_EQ(report_["sparsity"].get<double>(), 3.0 / 12);
  model_ = std::move(result_);
  options["importance_options"] = {{"seed", 9}};
  options["apply"] = "zero";

  ASSERT_EQ(apply("pruner.unstructured", options), "");

  EXPECT_DOUBLE_EQ(report_["sparsity"].get<double>(), 4.0 / 12);  // a quarter of 6, and of 3
  EXPECT_EQ(count_ops("Mul"), 0U);                                // folded
}

TEST_F(Unstructured, CubicScheduleRisesToTheEnd) {
  build_two();
  auto sparsity = [&](int step) {
    json options{{"sparsity", 0.75}, {"schedule", "cubic"}, {"step", step}, {"steps", 2}};
    EXPECT_EQ(apply("pruner.unstructured", options), "");
    return report_["weights"][0]["zeros"];
  };

  EXPECT_EQ(sparsity(0), 0);
  EXPECT_EQ(sparsity(1), 5);  // 8 * 0.75 * (1 - 1/8) = 5.25
  EXPECT_EQ(sparsity(2), 6);
}

TEST_F(Unstructured, BadOptionsSayWhatWasExpected) {
  build_two();

  EXPECT_THAT(apply("pruner.unstructured", {{"sparsity", 1.0}}),
              HasSubstr("option sparsity: expected"));
  for (const char* pattern : {"4:2", "2:2", "2", "0:4", "a:b", "2:4x"})
    EXPECT_THAT(apply("pruner.unstructured", {{"pattern", pattern}}),
                HasSubstr("option pattern: expected N:M with 0 < N < M"));
  for (const char* block : {"4", "0x1", "4:1", "4x1x"})
    EXPECT_THAT(apply("pruner.unstructured", {{"block", block}}),
                HasSubstr("option block: expected the channels that are made and read"));
  EXPECT_THAT(apply("pruner.unstructured", {{"block", "4x1"}, {"pattern", "2:4"}}),
              HasSubstr("option block: expected none beside option pattern"));
  EXPECT_THAT(apply("pruner.unstructured", {{"schedule", "cubic"}, {"pattern", "2:4"}}),
              HasSubstr("option schedule: expected"));
  EXPECT_THAT(apply("pruner.unstructured", {{"schedule", "cubic"}, {"step", 3}, {"steps", 2}}),
              HasSubstr("option step: expected at most steps (2), got 3"));
  EXPECT_THAT(apply("pruner.unstructured", {{"skip", {"*"}}}),
              HasSubstr("nothing to prune (first: in the skip list (*))"));
}

TEST_F(Unstructured, RewindingRestoresSurvivorsAndKeepsZeros) {
  build_two();
  OwnedGraph start = std::move(model_);
  model_ = {};
  SetUp();
  build([&](EditView edit) {  // the same model, "trained"
    Value x = input(edit, "x", {-1, 4});
    auto a = edit.constant<float>(TN_F32, {4, 2}, {9, 1, 9, 1, 9, 1, 9, 1}, "a");
    auto b = edit.constant<float>(TN_F32, {2, 2}, {1, 2, 3, 4}, "b");
    Value h = node(edit, "MatMul", {x, *a}, "first");
    Value bias = node(edit, "Add", {h, weight(edit, "bias", {2}, 8)}, "add");
    ASSERT_EQ(text_of(edit.output("y", node(edit, "MatMul", {bias, *b}, "second"))), "");
  });
  ASSERT_EQ(apply("pruner.unstructured", {{"sparsity", 0.5}, {"apply", "nodes"}}), "");
  OwnedGraph pruned = std::move(result_);

  for (const char* how : {"zero", "nodes"}) {
    ASSERT_EQ(apply_to("pruner.rewind", pruned, start, {{"apply", how}}), "");

    Floats batch = random(3 * 4, 5);
    EXPECT_EQ(numbers(result_, "bias"), numbers(start, "bias"));
    EXPECT_EQ(report_["rewound"], 3);
    EXPECT_EQ(report_["zeros"], 6);
    if (how == std::string("zero")) {
      EXPECT_THAT(numbers(result_, "a"), ElementsAre(1, 0, 2, 0, -3, 0, 4, 0));
      EXPECT_THAT(numbers(result_, "b"), ElementsAre(0, 0, -30, 40));
    } else {
      EXPECT_EQ(numbers(result_, "a"), numbers(start, "a"));
      EXPECT_EQ(count_ops("Mul"), 2U);
    }
  }
}

TEST_F(Unstructured, RewindingToAnotherModelIsRefused) {
  build_two();
  OwnedGraph start = std::move(model_);
  model_ = {};
  SetUp();
  build([&](EditView edit) {
    Value x = input(edit, "x", {-1, 4});
    Value y = node(edit, "MatMul", {x, weight(edit, "a", {4, 3}, 1)}, "first");
    ASSERT_EQ(text_of(edit.output("y", y)), "");
  });

  EXPECT_THAT(apply_to("pruner.rewind", model_, start, json::object()),
              HasSubstr("option to: a: expected float32 4 3, got float32 4 2"));
}

}  // namespace
}  // namespace tenon::test
