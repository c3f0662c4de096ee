// SPDX-License-Identifier: Apache-2.0
#include "threads/team.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include <pthread.h>

#include "threads/budget.hpp"
#include "threads/crew.hpp"
#include "threads/standing.hpp"

namespace tenon::host::team {
namespace {

// The crews that no caller uses now. The last that was given back is the first to go, as its
// workers are awake.
class Pool {
 public:
  Pool() : activity_(thread_budget()) {}

  Crew* acquire(int n_ids) {
    activity_.active.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    const auto fits = [n_ids](const Crew* crew) { return crew->n_ids() >= n_ids; };
    const auto found = std::find_if(free_.rbegin(), free_.rend(), fits);
    if (found == free_.rend()) return std::make_unique<Crew>(n_ids, activity_).release();
    Crew* crew = *found;
    free_.erase(std::next(found).base());
    return crew;
  }

  void release(Crew* crew) {
    activity_.active.fetch_sub(1, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    free_.push_back(crew);
  }

  int budget() const { return activity_.budget; }

 private:
  Activity activity_;
  std::mutex mutex_;  // guards free_
  std::vector<Crew*> free_;
};

// Never freed, as threads outlive every object. A child of fork has none of the threads, and
// perhaps a locked mutex: it gets a pool of its own.
std::atomic<Pool*> current_pool{nullptr};

Pool& pool() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr); });
  (void)registered;
  Pool* pool = current_pool.load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  auto made = std::make_unique<Pool>();
  if (current_pool.compare_exchange_strong(pool, made.get())) return *made.release();
  return *pool;
}

struct Mine {
  Crew* crew = nullptr;  // of the run, from its first region on
  Pool* pool = nullptr;  // that the crew is of
  int runs = 0;          // that this thread is in
  int inlined = 0;       // regions of one id, and regions in regions
  int max_threads = 0;   // 0: as the process has it
  bool ids_meet = true;
};

thread_local Mine mine;
thread_local Standing here;

int default_threads() {
  // OpenMP's variable: "4", or "4,2" where regions nest.
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int asked = text == nullptr ? 0 : std::atoi(text);
  return asked > 0 ? asked : pool().budget();
}

void give_back() {
  // After a fork the crew's workers are gone, and so is its pool.
  if (mine.crew != nullptr && mine.pool == &pool()) {
    mine.crew->end_run();
    mine.pool->release(mine.crew);
  }
  mine.crew = nullptr;
}

Crew& crew_for(int n_ids) {
  const bool fits = mine.crew != nullptr && mine.pool == &pool() && mine.crew->n_ids() >= n_ids;
  if (!fits) {
    give_back();
    mine.pool = &pool();
    mine.crew = mine.pool->acquire(n_ids);
    mine.crew->begin_run();
  }
  return *mine.crew;
}

}  // namespace

Standing& standing() {
  return here;
}

void begin(Body body, void* arg, int n) {
  if (n <= 0) n = max_threads();
  if (here.crew != nullptr || mine.inlined > 0 || n == 1) {
    ++mine.inlined;
    return;
  }
  Crew& crew = crew_for(n);
  here = {&crew, 0, n};
  crew.open(body, arg, n, mine.ids_meet);
}

void end() {
  if (mine.inlined > 0) {
    --mine.inlined;
    return;
  }
  if (here.crew == nullptr) return;  // nothing was begun
  here.crew->close(here.id);
  here = {};
  if (mine.runs == 0) give_back();
}

int id() {
  return mine.inlined > 0 ? 0 : here.id;
}

int size() {
  return mine.inlined > 0 ? 1 : here.n;
}

bool is_inside() {
  return here.crew != nullptr;
}

void barrier() {
  if (here.crew != nullptr && mine.inlined == 0) here.crew->barrier(here.n);
}

int max_threads() {
  if (mine.max_threads > 0) return mine.max_threads;
  static const int by_default = default_threads();
  return by_default;
}

uint64_t enter(int threads) {
  const auto before = static_cast<uint64_t>(mine.max_threads);
  const uint64_t token = before << 1 | (mine.ids_meet ? 1 : 0);
  if (threads > 0) mine.max_threads = threads;
  ++mine.runs;
  return token;
}

void leave(uint64_t token) {
  if (mine.runs == 0) return;  // nothing was entered
  mine.max_threads = static_cast<int>(token >> 1);
  mine.ids_meet = (token & 1) != 0;
  if (--mine.runs > 0) return;
  mine.max_threads = 0;  // also where tokens came back in another order
  mine.ids_meet = true;
  give_back();
}

void set_ids_meet(bool ids_meet) {
  if (mine.runs > 0) mine.ids_meet = ids_meet;
}

bool has_all_threads() {
  const int n = max_threads();
  return n == 1 || is_inside() || crew_for(n).has_all_threads(n);
}

}  // namespace tenon::host::team
