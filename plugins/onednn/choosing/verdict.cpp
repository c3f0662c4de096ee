// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <algorithm>

namespace tenon::onednn {
namespace {

bool beats(const std::vector<int64_t>& one, const std::vector<int64_t>& ruled) {
  size_t won = 0;
  for (size_t round = 0; round < ruled.size(); ++round)
    won += one[round] < ruled[round] ? 1 : 0;
  const auto best = static_cast<double>(*std::min_element(one.begin(), one.end()));
  const auto ruled_best = static_cast<double>(*std::min_element(ruled.begin(), ruled.end()));
  return best < (1 - kLeastGain) * ruled_best &&
         static_cast<double>(won) >= kLeastRoundsWon * static_cast<double>(ruled.size());
}

}  // namespace

std::vector<int64_t> best_times(const Times& times) {
  std::vector<int64_t> best;
  for (const std::vector<int64_t>& rounds : times) {
    if (rounds.size() < kFewestRounds) return {};
    best.push_back(*std::min_element(rounds.begin(), rounds.end()));
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
