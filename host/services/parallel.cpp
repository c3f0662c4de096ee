// SPDX-License-Identifier: Apache-2.0
#include "services/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

#include <omp.h>
#include <pthread.h>
#if defined(TENON_PARALLEL_STD_THREAD)
#include <thread>
#include <vector>
#endif

#include "services/boundary.hpp"
#include "services/session.hpp"

namespace tenon::host {
namespace {

// Threads beyond the callers that loops of this process use now. Process-wide because the threads
// are: libgomp knows no sessions, and two sessions must not start two teams per core.
std::atomic<int64_t> extra_in_use{0};

class Team {
 public:
  // Takes as many extra threads as the budget has, up to `wanted`.
  Team(int64_t wanted, int64_t budget) {
    int64_t in_use = extra_in_use.load(std::memory_order_relaxed);
    do {
      extra_ = std::clamp<int64_t>(budget - in_use, 0, wanted);
    } while (extra_ > 0 && !extra_in_use.compare_exchange_weak(in_use, in_use + extra_));
  }
  ~Team() {
    if (extra_ > 0) extra_in_use.fetch_sub(extra_);
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int64_t extra() const { return extra_; }

 private:
  int64_t extra_ = 0;
};

struct Loop {
  uint64_t n, chunk;
  RangeBody body;
  void* arg;
  std::atomic<uint64_t> next{0};  // chunk to hand out
  std::atomic<bool> failed{false};
  std::mutex mutex;  // guards why
  std::string why;

  // Takes chunks until none is left. Exceptions of a body end here, on the thread that threw.
  void work() noexcept {
    const uint64_t n_chunks = (n - 1) / chunk + 1;
    while (!failed.load(std::memory_order_relaxed)) {
      uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= n_chunks) return;
      try {
        body(arg, i * chunk, i + 1 == n_chunks ? n : (i + 1) * chunk);
      } catch (const std::exception& thrown) {
        fail(thrown.what());
      } catch (...) {
        fail("not a std::exception");
      }
    }
  }

  void fail(const char* text) noexcept {
    std::lock_guard lock(mutex);
    if (!failed.exchange(true)) quietly([&] { why = text; });
  }
};

#if defined(TENON_PARALLEL_STD_THREAD)
// ThreadSanitizer cannot see the barriers of libgomp, so its builds use threads that it knows.
thread_local bool inside = false;

bool in_parallel() {
  return inside;
}

void run_team(Loop& loop, int64_t extra) {
  std::vector<std::thread> threads;
  auto work = [&loop] {
    inside = true;
    loop.work();
  };
  for (int64_t i = 0; i < extra; ++i)
    threads.emplace_back(work);
  work();
  inside = false;
  for (std::thread& thread : threads)
    thread.join();
}
#else
bool in_parallel() {
  return omp_in_parallel();
}

void run_team(Loop& loop, int64_t extra) {
#pragma omp parallel num_threads(static_cast<int>(extra + 1))
  loop.work();
}
#endif

}  // namespace

void survive_forks() {
  static const int registered =
      pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);
  (void)registered;
}

size_t default_threads() {
  return static_cast<size_t>(std::max(1, omp_get_max_threads()));
}

Status run_parallel(size_t threads, uint64_t n, uint64_t grain, RangeBody body, void* arg) {
  if (n == 0) return {};
  grain = std::max<uint64_t>(grain, 1);
  const uint64_t most = (n - 1) / grain + 1;  // ranges of the least size
  const auto wanted = static_cast<int64_t>(std::min<uint64_t>(threads, most)) - 1;
  const bool inline_only = wanted <= 0 || in_parallel();
  const auto budget = static_cast<int64_t>(
      std::max(threads, static_cast<size_t>(std::max(1, omp_get_num_procs()))) - 1);
  Team team(inline_only ? 0 : wanted, budget);
  // Four ranges a thread: enough to even out unequal ones, few enough to cost nothing.
  const auto n_ranges = static_cast<uint64_t>(team.extra() == 0 ? 1 : 4 * (team.extra() + 1));
  Loop loop{n, std::max(grain, (n - 1) / n_ranges + 1), body, arg, {}, {}, {}, {}};
  if (team.extra() == 0) {
    loop.work();
  } else {
    run_team(loop, team.extra());
  }
  if (loop.failed) return {TN_INTERNAL, cat("parallel.run: the body threw: ", loop.why)};
  return {};
}

namespace {

uint64_t width(tn_ctx* ctx) {
  return ctx->session->threads;
}

tn_status* run(tn_ctx* ctx, uint64_t n, uint64_t grain, RangeBody body, void* arg) {
  return guarded([&]() -> Status {
    if (!body) return invalid("parallel.run: expected a body, got NULL");
    return run_parallel(ctx->session->threads, n, grain, body, arg);
  });
}

}  // namespace

const tn_host_parallel* parallel_service() {
  static const tn_host_parallel table{sizeof table, 1, width, run};
  return &table;
}

}  // namespace tenon::host
