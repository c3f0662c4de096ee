// SPDX-License-Identifier: Apache-2.0
// Regions: each id once, whoever runs it.
#include "threads/team.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tenon::host::team {
namespace {

constexpr int kIds = 4;

// What a region did: how often each id ran, and whether it knew the size.
struct Seen {
  std::array<std::atomic<int>, kIds> runs{};
  std::atomic<int> wrong_sizes{0};

  static void body(void* self) {
    Seen& seen = *static_cast<Seen*>(self);
    ++seen.runs[static_cast<size_t>(id())];
    seen.wrong_sizes += size() != kIds || !is_inside();
  }
  std::vector<int> counts() const { return {runs.begin(), runs.end()}; }
};

TEST(Team, RunsEachIdOnce) {
  Seen seen;
  region(Seen::body, &seen, kIds);
  EXPECT_EQ(seen.counts(), std::vector<int>(kIds, 1));
  EXPECT_EQ(seen.wrong_sizes, 0);
  EXPECT_FALSE(is_inside());
  EXPECT_EQ(size(), 1);
}

TEST(Team, LosesNoIdInManyRegions) {
  constexpr int kRegions = 200'000;
  Seen seen;
  Hold hold(kIds);
  for (int i = 0; i < kRegions; ++i)
    region(Seen::body, &seen, kIds);
  EXPECT_EQ(seen.counts(), std::vector<int>(kIds, kRegions));
  EXPECT_EQ(seen.wrong_sizes, 0);
}

TEST(Team, TakesTheRunsNumberOfIds) {
  struct {
    std::atomic<int> ids{0};
  } counted;
  const auto body = [](void* self) { ++static_cast<decltype(counted)*>(self)->ids; };
  {
    Hold hold(3);
    EXPECT_EQ(max_threads(), 3);
    region(body, &counted, 0);
    EXPECT_EQ(counted.ids, 3);
  }
  EXPECT_NE(max_threads(), 0);
}

TEST(Team, EndsNothingThatWasNotBegun) {
  const int before = max_threads();
  end();
  leave(2 * 77);
  EXPECT_EQ(max_threads(), before);

  Seen seen;
  region(Seen::body, &seen, kIds);
  EXPECT_EQ(seen.counts(), std::vector<int>(kIds, 1));
}

TEST(Team, LeavesNothingBehindWhateverTheOrderOfItsTokens) {
  const int before = max_threads();
  const uint64_t outer = enter(3), inner = enter(5);
  leave(outer);
  leave(inner);
  EXPECT_EQ(max_threads(), before);
}

TEST(Team, RunsRegionsInRegionsWithOneId) {
  struct Nested {
    std::atomic<int> outer{0}, inner{0}, wrong{0};
    static void inner_body(void* self) {
      Nested& nested = *static_cast<Nested*>(self);
      ++nested.inner;
      nested.wrong += id() != 0 || size() != 1 || !is_inside();
      barrier();  // of one: nobody to wait for
    }
    static void body(void* self) {
      Nested& nested = *static_cast<Nested*>(self);
      const int own = id();
      ++nested.outer;
      region(inner_body, self, 2);
      nested.wrong += id() != own || size() != kIds;
    }
  } nested;
  region(Nested::body, &nested, kIds);
  EXPECT_EQ(nested.outer, kIds);
  EXPECT_EQ(nested.inner, kIds);
  EXPECT_EQ(nested.wrong, 0);
}

// Each id adds its own after the barrier that all have passed before.
struct Phases {
  std::atomic<int> first{0}, late{0}, second{0};
  static void body(void* self) {
    Phases& phases = *static_cast<Phases*>(self);
    for (int round = 1; round <= 3; ++round) {
      ++phases.first;
      barrier();
      phases.late += phases.first < round * kIds;
      ++phases.second;
      barrier();
      phases.late += phases.second < round * kIds;
    }
  }
};

TEST(Team, MeetsAtBarriers) {
  Phases phases;
  Hold hold(kIds);
  for (int i = 0; i < 200; ++i) {
    phases.first = phases.second = 0;
    region(Phases::body, &phases, kIds);
  }
  EXPECT_EQ(phases.late, 0);
  EXPECT_EQ(phases.second, 3 * kIds);
}

// As oneDNN's simple_barrier: a loop of which the team knows nothing.
TEST(Team, BringsAllThreadsWhereIdsMeet) {
  struct Meeting {
    std::atomic<int> arrived{0};
    static void body(void* self) {
      Meeting& meeting = *static_cast<Meeting*>(self);
      ++meeting.arrived;
      while (meeting.arrived < kIds)
        std::this_thread::yield();
    }
  };
  Hold hold(kIds);
  ASSERT_TRUE(has_all_threads());
  set_ids_meet(true);
  for (int i = 0; i < 200; ++i) {
    Meeting meeting;
    region(Meeting::body, &meeting, kIds);
    ASSERT_EQ(meeting.arrived, kIds);
  }
}

TEST(Team, ServesCallersAtOnce) {
  constexpr int kCallers = 6;
  constexpr int kRegions = 3000;
  std::array<Seen, kCallers> seen;
  Phases phases[kCallers];
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      for (int i = 0; i < kRegions; ++i) {
        Hold hold(kIds);
        set_ids_meet(i % 5 == 0);
        region(Seen::body, &seen[static_cast<size_t>(c)], kIds);
        if (i % 100 != 0) continue;
        phases[c].first = phases[c].second = 0;
        region(Phases::body, &phases[c], kIds);
      }
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  for (int c = 0; c < kCallers; ++c) {
    EXPECT_EQ(seen[static_cast<size_t>(c)].counts(), std::vector<int>(kIds, kRegions));
    EXPECT_EQ(phases[c].late, 0);
  }
}

TEST(Team, GivesAnIdTheCallersRounding) {
#if defined(__x86_64__)
  struct Rounding {
    std::atomic<int> flushed{0};
    static void body(void* self) {
      const volatile float least = 1e-38F;
      static_cast<Rounding*>(self)->flushed += least / 16 == 0;
    }
  } rounding;
  Hold hold(kIds);
  const unsigned before = __builtin_ia32_stmxcsr();
  for (int i = 0; i < 50; ++i)
    region(Rounding::body, &rounding, kIds);
  EXPECT_EQ(rounding.flushed, 0);
  __builtin_ia32_ldmxcsr(before | 0x8000);  // flush to zero
  for (int i = 0; i < 50; ++i)
    region(Rounding::body, &rounding, kIds);
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(rounding.flushed, 50 * kIds);
#else
  GTEST_SKIP() << "this CPU flushes no denormals by MXCSR";
#endif
}

int exit_code_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Team, RunsInAForkedChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  Seen seen;
  Hold hold(kIds);  // the parent's threads are at hand
  region(Seen::body, &seen, kIds);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    Hold of_child(kIds);
    Phases phases;
    region(Phases::body, &phases, kIds);  // needs threads of the child's own
    for (int i = 1; i < 100; ++i)
      region(Seen::body, &seen, kIds);
    const bool is_right = seen.counts() == std::vector<int>(kIds, 100) && phases.late == 0;
    _exit(is_right ? 0 : 1);
  }
  EXPECT_EQ(exit_code_of(child), 0);
  region(Seen::body, &seen, kIds);
  EXPECT_EQ(seen.counts(), std::vector<int>(kIds, 2));
}

TEST(Team, RunsOnOneCpu) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  const pid_t child = fork();  // its budget is read again
  if (child == 0) {
    alarm(60);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(3);
    Hold hold(kIds);
    Seen seen;
    for (int i = 0; i < 1000; ++i)
      region(Seen::body, &seen, kIds);
    Phases phases;
    region(Phases::body, &phases, kIds);
    const bool is_right = seen.counts() == std::vector<int>(kIds, 1000) && phases.late == 0;
    _exit(is_right ? 0 : 1);
  }
  EXPECT_EQ(exit_code_of(child), 0);
}

// The same where the system gives no thread at all.
TEST(Team, NeedsNoWorker) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer needs the memory that this test takes away";
#endif
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    rlimit none{};
    getrlimit(RLIMIT_AS, &none);
    none.rlim_cur = 0;  // no stack for another thread, and none of those that are kept
    setrlimit(RLIMIT_AS, &none);
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, size_t{1} << 30);
    pthread_setattr_default_np(&large);
    Hold hold(kIds);
    if (has_all_threads()) _exit(2);
    Seen seen;
    set_ids_meet(false);
    for (int i = 0; i < 100; ++i)
      region(Seen::body, &seen, kIds);
    _exit(seen.counts() == std::vector<int>(kIds, 100) ? 0 : 1);
  }
  EXPECT_EQ(exit_code_of(child), 0);
}

}  // namespace
}  // namespace tenon::host::team
