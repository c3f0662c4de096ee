// SPDX-License-Identifier: Apache-2.0
// Where a forward pass is cut, without a graph.
#include "recompute_choice.hpp"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

namespace tenon::autodiff {
namespace {

// A chain of nodes, each of whose results the next one and the backward pass read.
std::vector<ForwardValue> chain(int n, int64_t bytes) {
  std::vector<ForwardValue> out;
  for (int i = 0; i < n; ++i)
    out.push_back({i, std::min(i + 1, n - 1), bytes, true});
  return out;
}

TEST(ChooseCuts, KeepsTheSquareRootOfAChain) {
  for (int n : {16, 64, 100, 400}) {
    Cuts cuts = choose_cuts(chain(n, 10), n);
    // k cuts keep k values, and the largest segment has n/(k + 1) - 1 beside the one that crosses.
    double root = std::sqrt(n);
    EXPECT_LE(static_cast<double>(cuts.kept + cuts.largest), 10 * 2 * root) << n;
    EXPECT_GE(static_cast<double>(cuts.kept + cuts.largest), 10 * (2 * root - 2.5)) << n;
  }
}

TEST(ChooseCuts, CutsWhereLittleCrosses) {
  // Blocks of four: three wide results inside, a narrow one between blocks.
  std::vector<ForwardValue> values;
  constexpr int kBlocks = 16;
  for (int i = 0; i < 4 * kBlocks; ++i) {
    bool is_last = i % 4 == 3;
    values.push_back({i, std::min(i + 1, 4 * kBlocks - 1), is_last ? 1 : 100, true});
  }
  Cuts cuts = choose_cuts(values, 4 * kBlocks);

  ASSERT_FALSE(cuts.ends.empty());
  for (int end : cuts.ends)
    EXPECT_EQ(end % 4, 3);
  EXPECT_EQ(cuts.largest, 301);  // cuts are so cheap that each block is a segment
}

TEST(ChooseCuts, CountsAResidualAtEachCutThatItCrosses) {
  // One value that the first node makes and the last one reads is kept once.
  std::vector<ForwardValue> values = chain(64, 10);
  values.push_back({0, 63, 1000, true});
  Cuts cuts = choose_cuts(values, 64);
  EXPECT_GT(cuts.kept, 1000);
  EXPECT_LT(cuts.kept, 1100);
}

TEST(ChooseCuts, FreesTheFirstOfThree) {
  // Products 0, 2, 4, which nobody reads again, and what their activations 1, 3, 5 make of them.
  std::vector<ForwardValue> values;
  for (int i = 0; i < 6; ++i)
    values.push_back({i, std::min(i + 1, 5), 10, i % 2 == 1});
  Cuts cuts = choose_cuts(values, 6);
  EXPECT_THAT(cuts.ends, testing::ElementsAre(3));
  EXPECT_EQ(cuts.kept + cuts.largest, 20);  // of 30
}

TEST(ChooseCuts, CutsNothingWhereNothingIsSaved) {
  std::vector<ForwardValue> values = chain(32, 10);
  for (ForwardValue& value : values)
    value.is_saved = false;
  EXPECT_TRUE(choose_cuts(values, 32).ends.empty());
  EXPECT_TRUE(choose_cuts({}, 0).ends.empty());
}

}  // namespace
}  // namespace tenon::autodiff
