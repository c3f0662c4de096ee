// SPDX-License-Identifier: Apache-2.0
// Where workers are kept under load: by what has made more progress.
#include "threads/arrangement.hpp"

#include <gtest/gtest.h>

namespace tenon::host::team {
namespace {

constexpr uint64_t kMs = 1'000'000;

// A machine on which a caller has such a part of a CPU, and workers run such a part of the ids.
struct Machine {
  double share_apart, by_workers_apart;
  double share_together, by_workers_together;
};

class ArrangementTest : public ::testing::Test {
 protected:
  // Looks once a millisecond; says for which part of the time the workers were kept apart.
  double run(const Machine& machine, uint64_t ms, bool helps = true) {
    uint64_t apart = 0;
    for (uint64_t i = 0; i < ms; ++i) {
      const bool is_apart = arrangement_.place() == Place::kApart;
      const double by_workers = is_apart ? machine.by_workers_apart : machine.by_workers_together;
      const double share = is_apart ? machine.share_apart : machine.share_together;
      for (int region = 0; region < 100; ++region)  // of two ids each
        arrangement_.count(2, region < 200 * by_workers ? 1 : 2);
      now_ += kMs;
      const auto cpu_ns = static_cast<uint64_t>(share * kMs);
      arrangement_.look(true, {now_, kMs, cpu_ns, kMs - cpu_ns});
      if (arrangement_.is_window_full()) arrangement_.end_window(now_, workers_waited_);
      if (i % 10 == 0 && helps) arrangement_.count_help();
      apart += is_apart ? 1 : 0;
    }
    return static_cast<double>(apart) / static_cast<double>(ms);
  }

  Arrangement arrangement_;
  double workers_waited_ = 0;
  uint64_t now_ = 1'000 * kMs;
};

TEST_F(ArrangementTest, LeavesWorkersAloneOnAQuietMachine) {
  EXPECT_EQ(arrangement_.place(), Place::kAnywhere);
  arrangement_.look(false, {now_, kMs, kMs, 0});
  EXPECT_EQ(arrangement_.place(), Place::kAnywhere);
  run({1, 0.3, 1, 0}, 1000);
  EXPECT_NE(arrangement_.place(), Place::kAnywhere);
  arrangement_.look(false, {now_, kMs, kMs, 0});
  EXPECT_EQ(arrangement_.place(), Place::kAnywhere);
}

TEST_F(ArrangementTest, KeepsThemApartWhereThatIsFaster) {
  EXPECT_GT(run({1, 0.3, 1, 0}, 20'000), 0.9);
}

TEST_F(ArrangementTest, KeepsThemTogetherWhereTheyStopEachOther) {
  run({0.4, 0.1, 0.9, 0}, 1'000);
  EXPECT_LT(run({0.4, 0.1, 0.9, 0}, 20'000), 0.1);
}

TEST_F(ArrangementTest, SeesThatNobodyElseIsThere) {
  bool is_unhindered = false;
  for (int i = 0; i < 100 && !is_unhindered; ++i) {
    run({0.95, 0.48, 0.9, 0}, 1);
    is_unhindered = arrangement_.is_unhindered();
  }
  EXPECT_TRUE(is_unhindered);
  for (int i = 0; i < 5000; ++i) {
    run({0.95, 0.35, 0.9, 0}, 1);  // 1.46: beside one program
    ASSERT_FALSE(arrangement_.is_unhindered());
  }
}

// Steps that one thread runs alone make less progress, with nobody in their way.
TEST_F(ArrangementTest, SeesThatNobodyWaits) {
  bool is_unhindered = false;
  for (int i = 0; i < 100 && !is_unhindered; ++i) {
    run({1, 0.2, 0.9, 0}, 1, false);
    is_unhindered = arrangement_.is_unhindered();
  }
  EXPECT_TRUE(is_unhindered);
}

// Beside one busy program the caller, on the other CPU, loses nothing.
TEST_F(ArrangementTest, SeesThatWorkersWait) {
  workers_waited_ = 0.6;
  for (int i = 0; i < 1000; ++i) {
    run({1, 0.2, 0.9, 0}, 1, false);
    ASSERT_FALSE(arrangement_.is_unhindered());
  }
}

TEST_F(ArrangementTest, FollowsTheMachine) {
  run({0.4, 0.1, 0.9, 0}, 5'000);
  run({1, 0.3, 0.5, 0}, 20'000);
  EXPECT_GT(run({1, 0.3, 0.5, 0}, 5'000), 0.9);
}

// The caller's CPU time alone says little: together, it makes what the workers would have made.
TEST_F(ArrangementTest, CountsWhatWorkersDo) {
  run({0.6, 0.5, 0.9, 0}, 1'000);  // 1.2 against 0.9
  EXPECT_GT(run({0.6, 0.5, 0.9, 0}, 20'000), 0.9);
}

}  // namespace
}  // namespace tenon::host::team
