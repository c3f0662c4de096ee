// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which channels go, from their scores: plain numbers, no graph.

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/sdk/status.hpp"

namespace tenon::pruner {

struct Candidate {             // one group
  std::string layer;           // for messages
  std::vector<double> scores;  // [channels]; the lowest go first, the lower number where equal
  double ratio = 0;            // of channels to remove
  int64_t width = 1;           // entries per channel, for rounding
};

struct Limits {
  int64_t round_to = 1;      // entries that stay: a multiple of this
  int64_t min_channels = 1;  // channels that stay
};

// How many of n channels stay when `wanted` should: rounded up to the multiple, at most n.
int64_t kept_count(int64_t wanted, int64_t n, int64_t width, const Limits& limits);

// For each group, for each channel: whether it goes. Local: each group loses its own ratio, to a
// channel less or more, so that all lose it together.
std::vector<std::vector<bool>> select_local(const std::vector<Candidate>& groups,
                                            const Limits& limits);
// Global: the lowest of all groups go until `ratio` of all channels have gone, but for those that
// a group must keep. An error when so many cannot go without emptying layers.
Result<std::vector<std::vector<bool>>> select_global(const std::vector<Candidate>& groups,
                                                     double ratio,
                                                     const Limits& limits);

// s_t = s_f + (s_i - s_f) (1 - t/n)^3 (Zhu and Gupta, "To prune, or not to prune", 2017), t of n
// steps; 0 of 0 is the end.
double cubic_sparsity(double initial, double final, int64_t step, int64_t steps);

}  // namespace tenon::pruner
