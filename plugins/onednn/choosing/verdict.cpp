// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <algorithm>

namespace tenon::onednn {
namespace {

int64_t best_of(const std::vector<int64_t>& rounds) {
  return *std::min_element(rounds.begin(), rounds.end());
}

bool is_steady(const std::vector<int64_t>& rounds) {
  const double most = kSteady * static_cast<double>(best_of(rounds));
  const auto n_near = std::count_if(rounds.begin(), rounds.end(),
                                    [most](int64_t ns) { return static_cast<double>(ns) <= most; });
  return 2 * static_cast<size_t>(n_near) > rounds.size();
}

bool beats(const std::vector<int64_t>& one, const std::vector<int64_t>& ruled) {
  size_t won = 0;
  for (size_t round = 0; round < ruled.size(); ++round)
    won += one[round] < ruled[round] ? 1 : 0;
  const auto best = static_cast<double>(best_of(one));
  const auto ruled_best = static_cast<double>(best_of(ruled));
  return is_steady(one) && is_steady(ruled) && best < (1 - kLeastGain) * ruled_best &&
         static_cast<double>(won) >= kLeastRoundsWon * static_cast<double>(ruled.size());
}

}  // namespace

std::vector<int64_t> best_times(const Times& times) {
  std::vector<int64_t> best;
  for (const std::vector<int64_t>& rounds : times) {
    if (rounds.size() < kFewestRounds) return {};
    best.push_back(best_of(rounds));
  }
  return best;
}

size_t verdict(const Times& times) {
  const std::vector<int64_t> best = best_times(times);
  size_t winner = 0;
  for (size_t i = 1; i < best.size(); ++i)
    if (beats(times[i], times[0]) && (winner == 0 || best[i] < best[winner])) winner = i;
  return winner;
}

}  // namespace tenon::onednn
