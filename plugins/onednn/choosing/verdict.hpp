// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who wins a contest. Beside busy programs times mean little, and who waits for threads that are
// not scheduled is not slower on a quiet machine: another one than the ruled choice must be clearly
// faster at its best, and in nearly every round, and the times of both must be steady.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::onednn {

// ns, by contestant and round; the contestant that the rules choose is the first. No rounds: there
// was no time for them.
using Times = std::vector<std::vector<int64_t>>;

// How much less time another one must take at its best, and the share of rounds that it must win.
constexpr double kLeastGain = 0.04;
constexpr double kLeastRoundsWon = 0.8;
// Most rounds take at most so many times the best one.
constexpr double kSteady = 1.15;
// With fewer rounds nothing is decided.
constexpr size_t kFewestRounds = 5;

// The index of the winner.
size_t verdict(const Times& times);
// The least time of each; empty where nothing was decided.
std::vector<int64_t> best_times(const Times& times);

}  // namespace tenon::onednn
