// SPDX-License-Identifier: Apache-2.0
// What is kept and what is computed again, without a graph, beside all choices that there are.
#include "keep_choice.hpp"

#include <limits>
#include <random>

#include <gmock/gmock.h>

namespace tenon::autodiff {
namespace {

using testing::ElementsAre;

// Nodes of one output each; the last ones are read.
KeepProblem chain(const std::vector<int64_t>& bytes, const std::vector<bool>& read, double cost) {
  KeepProblem out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<int> inputs;
    if (i > 0) inputs.push_back(static_cast<int>(i) - 1);
    out.nodes.push_back({cost, false, false, inputs, {static_cast<int>(i)}});
    out.values.push_back({bytes[i], read[i]});
  }
  return out;
}

// The least of bytes + price * cost over all sets of values that are kept.
double least(const KeepProblem& problem, double price) {
  double best = std::numeric_limits<double>::infinity();
  size_t n = problem.values.size();
  std::vector<size_t> made_by(n);
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    for (int output : problem.nodes[i].outputs)
      made_by[static_cast<size_t>(output)] = i;
  for (uint64_t kept = 0; kept < uint64_t{1} << n; ++kept) {
    std::vector<bool> again(problem.nodes.size());
    double total = 0;
    bool allowed = true;
    std::vector<size_t> open;
    for (size_t v = 0; v < n; ++v) {
      if (kept >> v & 1) {
        total += static_cast<double>(std::max<int64_t>(problem.values[v].bytes, 1));
        allowed = allowed && !problem.nodes[made_by[v]].is_view;
      } else if (problem.values[v].is_read) {
        open.push_back(v);
      }
    }
    while (!open.empty() && allowed) {
      size_t node = made_by[open.back()];
      open.pop_back();
      if (again[node]) continue;
      again[node] = true;
      allowed = !problem.nodes[node].is_fixed;
      total += price * problem.nodes[node].cost;
      for (int input : problem.nodes[node].inputs)
        if (!(kept >> input & 1)) open.push_back(static_cast<size_t>(input));
    }
    if (allowed) best = std::min(best, total);
  }
  return best;
}

TEST(ChooseKept, KeepsTheNarrowOneOfAChain) {
  // sin, cos, sum of x: the input is there anyway, so at a low price nothing is kept.
  KeepProblem problem = chain({100, 100, 100}, {true, true, true}, 1);
  EXPECT_THAT(choose_kept(problem, 1).values, ElementsAre(false, false, false));
  EXPECT_THAT(choose_kept(problem, 1000).values, ElementsAre(true, true, true));
  problem.values[1].bytes = 10;
  KeepChoice one = choose_kept(problem, 50);
  EXPECT_THAT(one.values, ElementsAre(false, true, false)) << "two are recomputed, one is kept";
  EXPECT_EQ(one.bytes, 10);
  EXPECT_EQ(one.cost, 2);
}

TEST(ChooseKept, KeepsWhatMayNotRunTwiceOrIsDear) {
  KeepProblem problem = chain({100, 1000, 100}, {true, true, true}, 1);
  problem.nodes[1].is_fixed = true;
  EXPECT_THAT(choose_kept(problem, 1).values, ElementsAre(false, true, false));
  problem.nodes[1].is_fixed = false;
  problem.nodes[1].cost = 1e6;
  EXPECT_THAT(choose_kept(problem, 1).values, ElementsAre(false, true, false));
}

TEST(ChooseKept, KeepsWhatAViewIsOf) {
  KeepProblem problem = chain({100, 100}, {false, true}, 1);
  problem.nodes[1].is_view = true;
  EXPECT_THAT(choose_kept(problem, 1e6).values, ElementsAre(true, false));
}

TEST(ChooseKept, IsNoWorseThanAnyChoice) {
  std::mt19937 random(5);
  auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int trial = 0; trial < 200; ++trial) {
    KeepProblem problem;
    int n = 3 + draw(8);
    for (int i = 0; i < n; ++i) {
      std::vector<int> inputs;
      for (int k = 0; k < 2 && i > 0; ++k)
        inputs.push_back(draw(i));
      bool is_view = i > 0 && draw(6) == 0;
      problem.nodes.push_back(
          {is_view ? 0.0 : draw(20), !is_view && draw(8) == 0, is_view, inputs, {i}});
      problem.values.push_back({1 + draw(50), draw(2) == 0});
    }
    for (double price : {0.0, 1.0, 3.0, 100.0}) {
      KeepChoice made = choose_kept(problem, price);
      EXPECT_EQ(static_cast<double>(made.bytes) + price * made.cost, least(problem, price))
          << trial << " at " << price;
    }
  }
}

TEST(FillKnapsack, TakesWhatIsWorthMost) {
  // PyTorch's case: the two of half the size, not the one that is worth most.
  EXPECT_THAT(fill_knapsack({600, 500, 500}, {10, 8, 8}, 1000), ElementsAre(false, true, true));
  EXPECT_THAT(fill_knapsack({600, 500}, {1, 2}, 0), ElementsAre(false, false));
  EXPECT_THAT(fill_knapsack({}, {}, 10), ElementsAre());
}

TEST(FillKnapsack, IsWithinOneInTwentyOfTheBest) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int64_t> sizes;
    std::vector<double> worth;
    for (int i = 0; i < 12; ++i) {
      sizes.push_back(1 + static_cast<int64_t>(random() % 1000));
      worth.push_back(1 + static_cast<double>(random() % 1000));
    }
    int64_t capacity = 2000;
    double best = 0;
    for (unsigned set = 0; set < 1u << 12; ++set) {
      int64_t size = 0;
      double value = 0;
      for (size_t i = 0; i < 12; ++i)
        if (set >> i & 1) size += sizes[i], value += worth[i];
      if (size <= capacity) best = std::max(best, value);
    }
    std::vector<bool> taken = fill_knapsack(sizes, worth, capacity);
    int64_t size = 0;
    double value = 0;
    for (size_t i = 0; i < 12; ++i)
      if (taken[i]) size += sizes[i], value += worth[i];
    EXPECT_LE(size, capacity);
    EXPECT_GE(value, 0.95 * best);
  }
}

}  // namespace
}  // namespace tenon::autodiff
