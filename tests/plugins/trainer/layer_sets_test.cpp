// SPDX-License-Identifier: Apache-2.0
// Sets of layers, against the sums that define them.
#include "layer_sets.hpp"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using trainer::LayerSets;

std::vector<double> shares(size_t n, double keep) {
  std::vector<double> out;
  for (size_t i = 1; i <= n; ++i)
    out.push_back(static_cast<double>(i) / static_cast<double>(n) * (1 - keep));
  return out;
}

// How often each layer is left out, by what is drawn.
std::vector<double> drawn(const LayerSets& of, size_t n, double all, int draws) {
  std::vector<double> out(n);
  for (int i = 0; i < draws; ++i) {
    double u = (i + 0.5) / draws;
    for (size_t layer : of.sets()[LayerSets::draw(of.sets(), u, all)].without)
      out[layer] += 1.0 / draws;
  }
  return out;
}

TEST(LayerSets, LeaveEachLayerOutAsOftenAsTheySay) {
  for (size_t n : {1, 2, 3, 12, 24, 48})
    for (double keep : {0.1, 0.5, 0.9, 1.0})
      for (size_t most : {2, 5, 12, 64}) {
        std::vector<double> wanted = shares(n, keep);
        LayerSets made(wanted, most);
        EXPECT_TRUE(made.sets()[0].without.empty());
        EXPECT_LE(made.sets().size(), most + 1);
        std::vector<double> sums(n);
        double total = 0;
        for (const LayerSets::Set& set : made.sets()) {
          total += set.chance;
          for (size_t layer : set.without)
            sums[layer] += set.chance;
        }
        EXPECT_NEAR(total, 1, 1e-12);
        for (size_t i = 0; i < n; ++i) {
          EXPECT_NEAR(sums[i], made.shares()[i], 1e-12) << n << " " << keep << " " << most;
          EXPECT_LE(std::abs(made.shares()[i] - wanted[i]),
                    1.0 / static_cast<double>(most) + 1e-12);
          EXPECT_LT(made.shares()[i], 1) << "a layer that never runs";
        }
      }
}

TEST(LayerSets, AreNearlyOfOneSizeAndDiffer) {
  LayerSets made(shares(12, 0.5), 12);
  std::set<std::vector<size_t>> seen;
  for (size_t k = 1; k < made.sets().size(); ++k) {
    const std::vector<size_t>& without = made.sets()[k].without;
    EXPECT_TRUE(without.size() == 3 || without.size() == 4) << without.size();
    EXPECT_TRUE(seen.insert(without).second);
    for (size_t i = 1; i < without.size(); ++i)
      EXPECT_GT(without[i], without[i - 1] + 1) << "neighbours";
  }
  EXPECT_GT(seen.size(), 8u);
}

TEST(LayerSets, AreDrawnWithTheirChancesAndLessOftenUnderASchedule) {
  LayerSets made(shares(6, 0.4), 12);
  for (double all : {0.0, 0.25, 0.9, 1.0}) {
    std::vector<double> seen = drawn(made, 6, all, 12000);
    for (size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(seen[i], (1 - all) * made.shares()[i], 1e-3) << all;
  }
}

}  // namespace
}  // namespace tenon::test
