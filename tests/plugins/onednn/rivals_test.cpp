// SPDX-License-Identifier: Apache-2.0
// Implementations between which times decide: the times are the tests' own.

#include "implementations/rivals.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "choosing/contest.hpp"
#include "choosing/measured_chooser.hpp"
#include "cpu.hpp"
#include "executable.hpp"
#include "graph_builder.hpp"

namespace tenon::onednn::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBudget = 1'000'000'000;

// Keeps what it decides in a folder of its own, and measures what `ns_of` says.
class Measured : public ::testing::Test {
 protected:
  Measured() {
    std::string name = (fs::temp_directory_path() / "tenon_rivals_XXXXXX").native();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
    store_.emplace(folder_, "a CPU", ChoiceStore::Note());
  }
  ~Measured() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  MeasuredChooser::Measure as_if(const std::string& fastest) {
    return [this, fastest](Contest contest, int64_t /*budget_ns*/) {
      keys_.push_back(contest.key);
      Times times;
      for (const Contestant& contestant : contest.contestants) {
        names_.insert(contestant.implementation);
        times.emplace_back(5, contestant.implementation == fastest ? 1000 : 2000);
      }
      return times;
    };
  }

  std::string folder_;
  std::optional<ChoiceStore> store_;
  std::vector<std::string> keys_;  // that were measured
  std::set<std::string> names_;    // who took part
};

// Left out, so that the same implementations take part on every CPU.
const std::vector<std::string> kTiles = {"bf16x6"};

// Products of more rows than the rule gives to our kernel, with an activation behind each.
Graph products(int n) {
  static std::vector<std::unique_ptr<GraphBuilder>> kept;
  kept.push_back(std::make_unique<GraphBuilder>(3));
  GraphBuilder& b = *kept.back();
  int x = b.input("x", {1200, 32});
  for (int i = 0; i < n; ++i) {
    const int product = b.node("MatMul", {x, b.random_constant({32, 32}, 0.2F)}, {1200, 32});
    x = b.relu(b.add(product, b.random_constant({32}, 0.2F)));
  }
  b.output(x);
  b.graph.finish();
  return b.graph;
}

std::vector<std::string> implementations_of(const Executable& exe) {
  std::vector<std::string> names;
  for (const Step& step : exe.plan().steps)
    if (step.choice) names.push_back(step.choice->implementation);
  return names;
}

std::vector<float> run(Executable& exe, const Graph& graph) {
  std::vector<float> x(static_cast<size_t>(graph.values[graph.inputs[0]].count()));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 17) * 0.1F - 0.8F;
  std::vector<float> y(static_cast<size_t>(graph.values[graph.outputs[0]].count()), -99.0F);
  const std::vector<const void*> in = {x.data()};
  const std::vector<void*> out = {y.data()};
  std::shared_ptr<void> workspace = aligned_bytes(exe.workspace_bytes());
  EXPECT_EQ(exe.run({.inputs = in, .outputs = out, .workspace = workspace.get()}), nullptr);
  return y;
}

bool has_float_kernel() {
  return best_level() >= kernels::Level::kAvx2;
}

TEST_F(Measured, TheFastestIsBuiltAndEqualLayersAreMeasuredOnce) {
  if (!has_float_kernel()) GTEST_SKIP() << "no fused multiply-add on this CPU";
  const Graph graph = products(3);
  WeightStore weights;
  MeasuredChooser chooser(*store_, kBudget, as_if("f32 gemm"));

  Executable ruled(graph, {.threads = 1, .without = kTiles}, weights);
  Executable exe(graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);

  EXPECT_EQ(implementations_of(ruled), std::vector<std::string>(3, "onednn + epilogue"));
  EXPECT_EQ(implementations_of(exe), std::vector<std::string>(3, "f32 gemm"));
  EXPECT_EQ(names_, (std::set<std::string>{"f32 gemm", "onednn"}));
  // What follows the last one is the end, what follows the others a product.
  EXPECT_EQ(keys_.size(), 2U);
  const Choice& choice = *exe.plan().steps[0].choice;
  ASSERT_EQ(choice.measured.size(), 2U);
  EXPECT_EQ(choice.measured[0].implementation, "onednn");
  EXPECT_EQ(choice.measured[0].ns, 2000);
  EXPECT_EQ(choice.measured[1].implementation, "f32 gemm");
  EXPECT_EQ(choice.decided, "f32 gemm");

  const std::vector<float> expected = run(ruled, graph), got = run(exe, graph);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-4F) << i;
}

TEST_F(Measured, WhatWasKeptIsBuiltWithoutAClock) {
  if (!has_float_kernel()) GTEST_SKIP() << "no fused multiply-add on this CPU";
  const Graph graph = products(2);
  WeightStore weights;
  MeasuredChooser chooser(*store_, kBudget, as_if("f32 gemm"));
  Executable first(graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);
  keys_.clear();

  ChoiceStore other_process(folder_, "a CPU", {});
  MeasuredChooser now(other_process, kBudget, as_if("onednn"));
  Executable second(graph, {.threads = 1, .without = kTiles, .chooser = &now}, weights);
  MeasuredChooser deterministic(other_process, 0, as_if("onednn"));
  Executable third(graph, {.threads = 1, .without = kTiles, .chooser = &deterministic}, weights);

  EXPECT_EQ(keys_, std::vector<std::string>{});
  EXPECT_EQ(implementations_of(second), implementations_of(first));
  EXPECT_EQ(implementations_of(third), implementations_of(first));
  EXPECT_EQ(run(second, graph), run(first, graph));
}

TEST_F(Measured, ATrialLeavesNothing) {
  const Graph graph = products(3);
  WeightStore weights;
  MeasuredChooser chooser(*store_, kBudget, as_if("onednn"));

  Executable ruled(graph, {.threads = 1, .without = kTiles}, weights);
  Executable exe(graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);

  EXPECT_EQ(keys_.empty(), !has_float_kernel());
  ASSERT_EQ(exe.plan().steps.size(), ruled.plan().steps.size());
  EXPECT_EQ(exe.plan().buffers.size(), ruled.plan().buffers.size());
  EXPECT_EQ(exe.plan().n_reorders, ruled.plan().n_reorders);
  EXPECT_EQ(exe.plan().packed_bytes, ruled.plan().packed_bytes);
  EXPECT_EQ(exe.workspace_bytes(), ruled.workspace_bytes());
  EXPECT_EQ(run(exe, graph), run(ruled, graph));
}

// The budget holds for all compiles together, and what it does not reach stays as it is.
TEST_F(Measured, BeyondTheBudgetTheRulesChooseForGood) {
  if (!has_float_kernel()) GTEST_SKIP() << "no fused multiply-add on this CPU";
  const Graph graph = products(2);
  WeightStore weights;
  int n_measured = 0;
  MeasuredChooser chooser(*store_, 1, [&](Contest contest, int64_t) {
    ++n_measured;
    return Times(contest.contestants.size());
  });
  Executable exe(graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);
  EXPECT_EQ(n_measured, 1);
  EXPECT_EQ(implementations_of(exe), std::vector<std::string>(2, "onednn + epilogue"));

  MeasuredChooser later(*store_, kBudget, as_if("f32 gemm"));
  Executable again(graph, {.threads = 1, .without = kTiles, .chooser = &later}, weights);
  EXPECT_EQ(implementations_of(again), implementations_of(exe));
  EXPECT_EQ(keys_, std::vector<std::string>{});
}

TEST_F(Measured, KeptOnlyKeepsNothing) {
  const Graph graph = products(1);
  WeightStore weights;
  MeasuredChooser kept(*store_, 0, as_if("f32 gemm"));
  Executable exe(graph, {.threads = 1, .without = kTiles, .chooser = &kept}, weights);

  EXPECT_EQ(implementations_of(exe), std::vector<std::string>{"onednn + epilogue"});
  EXPECT_EQ(keys_, std::vector<std::string>{});
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Measured, AnotherProcessDecidedMeanwhile) {
  if (!has_float_kernel()) GTEST_SKIP() << "no fused multiply-add on this CPU";
  const Graph graph = products(1);
  WeightStore weights;
  MeasuredChooser chooser(*store_, kBudget, [&](Contest contest, int64_t) {
    ChoiceStore(folder_, "a CPU", {}).keep(contest.key, {"onednn"});
    return Times{std::vector<int64_t>(5, 2000), std::vector<int64_t>(5, 1000)};
  });
  Executable exe(graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);

  EXPECT_EQ(implementations_of(exe), std::vector<std::string>{"onednn + epilogue"});
}

TEST_F(Measured, WhatCannotBeKeptIsNotMeasured) {
  const Graph graph = products(1);
  WeightStore weights;
  ChoiceStore nowhere("", "a CPU", {});
  MeasuredChooser chooser(nowhere, kBudget, as_if("f32 gemm"));
  Executable exe(graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);

  EXPECT_EQ(implementations_of(exe), std::vector<std::string>{"onednn + epilogue"});
  EXPECT_EQ(keys_, std::vector<std::string>{});
}

TEST_F(Measured, WhatAnOptionLeavesOutTakesNoPart) {
  const Graph graph = products(1);
  WeightStore weights;
  MeasuredChooser chooser(*store_, kBudget, as_if("f32 gemm"));
  Executable exe(graph, {.threads = 1, .without = {"f32 gemm", "bf16x6"}, .chooser = &chooser},
                 weights);

  EXPECT_EQ(implementations_of(exe), std::vector<std::string>{"onednn + epilogue"});
  EXPECT_EQ(keys_, std::vector<std::string>{});
}

// A small image, for which the rule takes the sum; one implementation adds the residual and the
// activation in its own step, the other may leave them to later ones.
TEST_F(Measured, ConvolutionsAreComparedWithAllThatFollows) {
  GraphBuilder b(3);
  const int x = b.input("x", {1, 32, 9, 9});
  const int before = b.relu(b.conv(x, 32, 1, 1));
  b.output(b.node("Sigmoid", {b.add(b.conv(before, 32, 3, 1), before)}, {1, 32, 9, 9}, {},
                  {{TN_EXPR_INPUT, 0, 0, 0, 0}, {TN_EXPR_SIGMOID, 0, 0, 0, 0}}));
  b.graph.finish();
  WeightStore weights;
  MeasuredChooser chooser(*store_, kBudget, as_if("winograd"));

  Executable ruled(b.graph, {.threads = 1, .without = kTiles}, weights);
  Executable exe(b.graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);

  const std::vector<std::string> chosen = implementations_of(exe);
  if (keys_.empty()) GTEST_SKIP() << "minimal filtering is not fast on this CPU";
  EXPECT_NE(std::find(chosen.begin(), chosen.end(), "winograd"), chosen.end());
  const std::vector<float> expected = run(ruled, b.graph), got = run(exe, b.graph);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-4F) << i;
}

// Each trial would pack them once more.
TEST_F(Measured, LargeWeightsFollowTheRules) {
  WeightStore weights;
  MeasuredChooser chooser(*store_, kBudget, as_if("f32 gemm"));
  GraphBuilder b(3);
  const int x = b.input("x", {1200, 3000});
  const int w = b.constant({3000, 3000}, std::vector<float>(3000 * 3000, 0.5F));
  b.output(b.node("MatMul", {x, w}, {1200, 3000}));
  b.graph.finish();
  Executable exe(b.graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);
  EXPECT_EQ(implementations_of(exe), std::vector<std::string>{"onednn"});
  EXPECT_EQ(keys_, std::vector<std::string>{});
}

// How many zeros there are is part of what is decided; what an option asks for has no rivals.
TEST_F(Measured, SparseWeightsDifferByTheirZeros) {
  if (!has_float_kernel()) GTEST_SKIP() << "no fused multiply-add on this CPU";
  WeightStore weights;
  MeasuredChooser chooser(*store_, kBudget, as_if("sparse"));
  for (const int each : {5, 5, 10}) {  // all but one of so many are zeros
    GraphBuilder b(3);
    const int x = b.input("x", {1200, 64});
    std::vector<float> numbers(64 * 64, 0.0F);
    for (size_t i = 0; i < numbers.size(); i += static_cast<size_t>(each))
      numbers[i] = 0.5F;
    b.output(b.node("MatMul", {x, b.constant({64, 64}, numbers)}, {1200, 64}));
    b.graph.finish();
    Executable ruled(b.graph, {.threads = 1, .without = kTiles}, weights);
    Executable exe(b.graph, {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);
    EXPECT_EQ(implementations_of(ruled), std::vector<std::string>{"onednn"});
    EXPECT_EQ(implementations_of(exe), std::vector<std::string>{"sparse"});
    const size_t n_keys = keys_.size();
    Executable asked(b.graph,
                     {.sparse = Use::kAll, .threads = 1, .without = kTiles, .chooser = &chooser},
                     weights);
    EXPECT_EQ(implementations_of(asked), std::vector<std::string>{"sparse"});
    EXPECT_EQ(keys_.size(), n_keys);
    const std::vector<float> expected = run(ruled, b.graph), got = run(exe, b.graph);
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 1e-4F) << i;
  }
  EXPECT_EQ(keys_.size(), 2U);
}

// With the clock; whoever wins, there are times of all.
TEST_F(Measured, AContestTakesTimes) {
  if (!has_float_kernel()) GTEST_SKIP() << "no fused multiply-add on this CPU";
  const Graph graph = products(1);
  WeightStore weights;
  for (const bool is_cold : {false, true}) {
    Times times;
    ChoiceStore store(folder_, is_cold ? "cold" : "warm", {});
    MeasuredChooser chooser(store, kBudget, [&](Contest contest, int64_t) {
      contest.reads_cold_weights = is_cold;
      times = hold_contest(std::move(contest), 100 * kBudget);
      return times;
    });
    Executable exe(graph, {.threads = 2, .without = kTiles, .chooser = &chooser}, weights);
    ASSERT_EQ(times.size(), 2U);
    for (const std::vector<int64_t>& each : times) {
      EXPECT_GE(each.size(), kFewestRounds);
      EXPECT_GT(*std::min_element(each.begin(), each.end()), 0);
    }
  }
}

TEST_F(Measured, AContestBeyondItsBudgetHasNoTimes) {
  if (!has_float_kernel()) GTEST_SKIP() << "no fused multiply-add on this CPU";
  WeightStore weights;
  Times times = {{1}};
  MeasuredChooser chooser(*store_, kBudget, [&](Contest contest, int64_t) {
    times = hold_contest(std::move(contest), 1);
    return times;
  });
  Executable exe(products(1), {.threads = 1, .without = kTiles, .chooser = &chooser}, weights);
  EXPECT_TRUE(best_times(times).empty());
}

TEST(Verdict, AnotherOneMustBeClearlyFasterInNearlyAllRounds) {
  const std::vector<int64_t> ruled(5, 100);
  auto others = [](int64_t ns) { return std::vector<int64_t>(5, ns); };
  EXPECT_EQ(verdict({ruled, others(90)}), 1U);
  EXPECT_EQ(verdict({ruled, others(97)}), 0U);
  EXPECT_EQ(verdict({ruled, {90, 90, 90, 90, 150}}), 1U);
  EXPECT_EQ(verdict({ruled, {90, 90, 90, 150, 150}}), 0U);
  EXPECT_EQ(verdict({ruled, others(90), others(80)}), 2U);
  EXPECT_EQ(verdict({ruled, others(80), others(90)}), 1U);
}

TEST(Verdict, BesideBusyProgramsTheRuledChoiceStays) {
  EXPECT_EQ(verdict({{100, 300, 350, 400, 200}, {50, 60, 70, 90, 55}}), 0U);
  EXPECT_EQ(verdict({{100, 101, 102, 100, 100}, {50, 60, 70, 90, 99}}), 0U);
  EXPECT_EQ(verdict({{100, 101, 102, 300, 100}, {50, 51, 52, 90, 53}}), 1U);
}

TEST(Verdict, FewRoundsDecideNothing) {
  EXPECT_EQ(verdict({{100, 100, 100, 100}, {50, 50, 50, 50}}), 0U);
  EXPECT_EQ(verdict({{}, {}}), 0U);
  EXPECT_TRUE(best_times({{100, 100, 100, 100}, {50, 50, 50, 50}}).empty());
  EXPECT_EQ(best_times({{100, 90, 110, 95, 99}, {50, 60, 70, 80, 90}}),
            (std::vector<int64_t>{90, 50}));
}

}  // namespace
}  // namespace tenon::onednn::test
