// SPDX-License-Identifier: Apache-2.0
#include "threads/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

#include "services/boundary.hpp"
#include "services/session.hpp"
#include "threads/team.hpp"

namespace tenon::host {
namespace {

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

// One id of the team's region: it takes ranges until none is left.
void work(void* loop) {
  static_cast<Loop*>(loop)->work();
}

}  // namespace

Status run_parallel(size_t threads, uint64_t n, uint64_t grain, RangeBody body, void* arg) {
  if (n == 0) return {};
  grain = std::max<uint64_t>(grain, 1);
  const uint64_t most = (n - 1) / grain + 1;  // ranges of the least size
  const uint64_t ids = team::is_inside() ? 1 : std::clamp<uint64_t>(threads, 1, most);
  // Four ranges a thread: enough to even out unequal ones, few enough to cost nothing.
  const uint64_t n_ranges = ids == 1 ? 1 : 4 * ids;
  Loop loop{n, std::max(grain, (n - 1) / n_ranges + 1), body, arg, {}, {}, {}, {}};
  team::Hold hold(static_cast<int>(ids));
  team::set_ids_meet(false);
  team::region(work, &loop, static_cast<int>(ids));
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
