// SPDX-License-Identifier: Apache-2.0
// Ranges of a loop run once, whatever fails: what throws, and a host that gives up.
#include <atomic>
#include <numeric>
#include <stdexcept>

#include "tenon/sdk/run.hpp"

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

class SdkParallel : public PluginTest {
 protected:
  static constexpr uint64_t kCount = 100;

  // A host that hands out the first `ranges` of ten, and then fails.
  void give_up_after(uint64_t ranges) {
    given_ = ranges;
    failing_ = {sizeof failing_, 1, [](tn_ctx*) -> uint64_t { return 2; }, give_up};
    services.parallel = &failing_;
  }
  static tn_status* give_up(
      tn_ctx*, uint64_t, uint64_t, void (*body)(void*, uint64_t, uint64_t), void* arg) {
    for (uint64_t i = 0; i < given_; ++i)
      body(arg, 10 * i, 10 * i + 10);
    return Status(TN_INTERNAL, "no more").release();
  }

  std::vector<int> runs_ = std::vector<int>(kCount, 0);
  tn_host_parallel failing_{};
  static inline uint64_t given_ = 0;
};

TEST_F(SdkParallel, RunsEveryElementOnce) {
  parallel_for(ctx_, kCount, 7, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      ++runs_[i];
  });
  EXPECT_EQ(runs_, std::vector<int>(kCount, 1));
}

TEST_F(SdkParallel, WhatARangeThrowsIsThrownAndNoRangeRunsTwice) {
  std::vector<std::atomic<int>> begun(kCount);
  auto body = [&](uint64_t begin, uint64_t) {
    ++begun[begin];
    throw std::runtime_error("the third of its kind");
  };
  EXPECT_THROW(parallel_for(ctx_, kCount, 1, body), std::runtime_error);
  int total = 0;
  for (const auto& times : begun) {
    EXPECT_LE(times, 1);
    total += times;
  }
  EXPECT_GE(total, 1);
}

TEST_F(SdkParallel, WithoutThreadsTheCallerDoesItAll) {
  give_up_after(0);
  parallel_for(ctx_, kCount, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      ++runs_[i];
  });
  EXPECT_EQ(runs_, std::vector<int>(kCount, 1));
}

TEST_F(SdkParallel, AHostThatGivesUpHalfwayIsAFailure) {
  give_up_after(3);
  auto body = [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      ++runs_[i];
  };
  EXPECT_THROW(parallel_for(ctx_, kCount, 1, body), std::runtime_error);
  EXPECT_EQ(std::accumulate(runs_.begin(), runs_.end(), 0), 30);
}

}  // namespace
}  // namespace tenon::test
