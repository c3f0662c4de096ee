// SPDX-License-Identifier: Apache-2.0
#include "threads/parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/host_fixture.hpp"

namespace tenon::host {
namespace {

using ::testing::HasSubstr;

class Parallel : public HostTest {
 protected:
  const tn_host_parallel& api = service<tn_host_parallel>("tenon.host.parallel/1");

  template <class Body>
  std::string run(uint64_t n, uint64_t grain, Body body) {
    auto call = [](void* arg, uint64_t begin, uint64_t end) {
      (*static_cast<Body*>(arg))(begin, end);
    };
    return text(api.run(ctx(), n, grain, call, &body));
  }
};

#if !defined(__SANITIZE_THREAD__)  // whose runtime cannot start threads in a child
TEST_F(Parallel, WorksInAForkedChild) {
  session_.threads = 4;
  auto sum = [&] {
    std::atomic<uint64_t> all{0};
    run(1000, 1, [&](uint64_t begin, uint64_t end) { all += end - begin; });
    return all.load();
  };
  ASSERT_EQ(sum(), 1000);  // the team is there
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(sum() == 1000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sum(), 1000);
}
#endif

TEST_F(Parallel, CoversEachIndexOnce) {
  session_.threads = 4;
  for (uint64_t n : {0, 1, 7, 100, 10007}) {
    for (uint64_t grain : {0, 1, 16, 20000}) {
      std::vector<std::atomic<int>> seen(n);
      std::atomic<uint64_t> short_ranges{0};
      ASSERT_EQ(run(n, grain,
                    [&](uint64_t begin, uint64_t end) {
                      if (end - begin < grain) ++short_ranges;
                      for (uint64_t i = begin; i < end; ++i)
                        ++seen[i];
                    }),
                "");
      for (auto& count : seen)
        ASSERT_EQ(count, 1);
      EXPECT_LE(short_ranges, 1u) << "only the last range may be shorter";
    }
  }
}

TEST_F(Parallel, RunsSmallLoopsOnTheCaller) {
  session_.threads = 4;
  std::thread::id where;

  ASSERT_EQ(run(100, 100, [&](uint64_t, uint64_t) { where = std::this_thread::get_id(); }), "");
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_F(Parallel, UsesSeveralThreads) {
  session_.threads = 2;
  std::atomic<int> arrived{0};

  // Ends only when two ranges run at once.
  ASSERT_EQ(run(2, 1,
                [&](uint64_t, uint64_t) {
                  ++arrived;
                  while (arrived < 2)
                    std::this_thread::yield();
                }),
            "");
}

TEST_F(Parallel, RunsNestedLoopsInline) {
  session_.threads = 4;
  std::atomic<uint64_t> sum{0};
  std::atomic<int> elsewhere{0};

  ASSERT_EQ(run(8, 1,
                [&](uint64_t begin, uint64_t end) {
                  auto caller = std::this_thread::get_id();
                  for (uint64_t i = begin; i < end; ++i)
                    run(100, 1, [&](uint64_t from, uint64_t to) {
                      sum += to - from;
                      if (std::this_thread::get_id() != caller) ++elsewhere;
                    });
                }),
            "");
  EXPECT_EQ(sum, 800u);
  EXPECT_EQ(elsewhere, 0);
}

TEST_F(Parallel, TurnsAnExceptionIntoAStatus) {
  session_.threads = 4;
  EXPECT_THAT(run(1000, 1,
                  [](uint64_t begin, uint64_t) {
                    if (begin > 100) throw std::runtime_error("boom");
                  }),
              HasSubstr("parallel.run: the body threw: boom"));
  EXPECT_THAT(run(1, 1, [](uint64_t, uint64_t) { throw 7; }), HasSubstr("not a std::exception"));
  EXPECT_EQ(run(1000, 1, [](uint64_t, uint64_t) {}), "") << "the threads are free again";
}

TEST_F(Parallel, SharesTheBudgetBetweenCallers) {
  session_.threads = 3;
  std::vector<uint64_t> sums(8);
  {
    std::vector<std::jthread> callers;
    for (uint64_t& sum : sums)
      callers.emplace_back([&] {
        for (int round = 0; round < 50; ++round) {
          std::atomic<uint64_t> part{0};
          run(997, 10, [&](uint64_t begin, uint64_t end) { part += end - begin; });
          sum += part;
        }
      });
  }
  for (uint64_t sum : sums)
    EXPECT_EQ(sum, 50u * 997);
}

TEST_F(Parallel, RefusesAMissingBody) {
  EXPECT_THAT(text(api.run(ctx(), 1, 1, nullptr, nullptr)), HasSubstr("got NULL"));
  EXPECT_EQ(api.width(ctx()), session_.threads);
  EXPECT_GE(api.width(ctx()), 1u);
}

}  // namespace
}  // namespace tenon::host
