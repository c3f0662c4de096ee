// SPDX-License-Identifier: Apache-2.0
// The largest batch within a limit, against trying all of them.
#include "batch_finder.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using Cost = std::function<uint64_t(uint64_t)>;

uint64_t by_trying(uint64_t limit, uint64_t most, const Cost& cost) {
  uint64_t best = 0;
  for (uint64_t batch = 1; batch <= most && cost(batch) <= limit; ++batch)
    best = batch;
  return best;
}

uint64_t tries_for(uint64_t limit, uint64_t most, const Cost& cost) {
  auto found =
      trainer::find_batch(limit, most, [&](uint64_t b) -> Result<uint64_t> { return cost(b); });
  EXPECT_TRUE(found.ok());
  EXPECT_EQ(found->batch, by_trying(limit, most, cost)) << "limit " << limit << " of " << most;
  EXPECT_EQ(found->bytes, cost(std::max<uint64_t>(found->batch, 1)));
  return found->tries;
}

TEST(BatchFinder, TakesFewTriesWhereTheCostIsALine) {
  Cost line = [](uint64_t b) { return 1'000'000 + 12'345 * b; };
  for (uint64_t limit : {1'012'345, 1'300'000, 9'999'999, 64'000'000})
    EXPECT_LE(tries_for(limit, 4096, line), 5u) << limit;
}

TEST(BatchFinder, IsRightForWhateverGrows) {
  const std::vector<Cost> costs{
      [](uint64_t b) { return 100 + b * b; },
      [](uint64_t b) { return 4096 * ((b + 15) / 16); },
      [](uint64_t b) { return b < 100 ? 10 : 1'000'000 + b; },
      [](uint64_t b) { return static_cast<uint64_t>(1e4 * std::log2(1 + static_cast<double>(b))); },
      [](uint64_t) { return uint64_t{7}; },
  };
  for (const Cost& cost : costs)
    for (uint64_t limit : {0, 7, 150, 10'000, 65'536, 1'000'500})
      for (uint64_t most : {1, 2, 8, 9, 777})
        EXPECT_LE(tries_for(limit, most, cost), 24u);
}

}  // namespace
}  // namespace tenon::test
