// SPDX-License-Identifier: Apache-2.0
#pragma once
// A crew: one caller's place for regions, with a seat for each id but 0 and a worker bound to each
// seat. It is never freed, so a worker that wakes late looks at words that are still words; what it
// may do with them is decided by one compare-exchange on the seat's ticket.

#include <atomic>
#include <cstdint>
#include <memory>

#include "threads/arrangement.hpp"
#include "threads/load.hpp"
#include "threads/placement.hpp"

namespace tenon::host::team {

using Body = void (*)(void* arg);

class Crew;

// What one id waits for. A ticket is even while nobody has begun the id, odd from then on; each
// region of the crew has the next even number, so a compare-exchange that succeeds proves that
// what was read beside the ticket belongs to it.
struct alignas(64) Seat {
  std::atomic<uint64_t> ticket{1};
  std::atomic<Body> body{nullptr};
  std::atomic<void*> arg{nullptr};
  std::atomic<int> n{0};
  std::atomic<uint32_t> float_mode{0};
  std::atomic<uint32_t> asleep{0};  // 1: the worker sleeps on this word, or is about to
  std::atomic<bool> has_worker{false};
  std::atomic<bool> is_at_work{false};  // the worker runs an id, this one or another
  int id = 0;
  Crew* crew = nullptr;
  Placement placement;         // of the worker
  uint64_t cpu_before_ns = 0;  // what the worker had run when the caller began to wait
  uint64_t waited_ns = 0;      // for a CPU, when that was last read
};

// Threads of the process that run or look for work, and how many may.
struct Activity {
  explicit Activity(int budget_) : budget(budget_) {}
  const int budget;
  alignas(64) std::atomic<int> active{0};  // callers in a run, workers that are awake
  Load load;
};

class Crew {
 public:
  // For regions of at most n_ids ids.
  Crew(int n_ids, Activity& activity);

  int n_ids() const { return n_ids_; }
  // By the caller. Workers come for ids 1..n-1; those that sleep are woken while the budget lasts,
  // all of them when ids_meet.
  void open(Body body, void* arg, int n, bool ids_meet);
  // By the caller, when id 0 is done: runs what nobody has begun, returns when all are done.
  void close(int& id);
  void barrier(int n);
  // By the caller, around the regions of a run.
  void begin_run() { watch_.begin_run(); }
  void end_run() { arrange(watch_.end_run(activity_.load)); }
  // Starts the threads that are missing; false when the system gives none.
  bool has_all_threads(int n);

 private:
  bool try_seat(Seat& seat, uint64_t ticket, Seat& own);
  bool start_worker(Seat& seat);
  static void* work(void* seat);
  uint64_t wait_for_ticket(Seat& seat);
  void wake(Seat& seat);
  void call(Seat& seat, bool must);
  void one_done();
  void arrange(const CallerWatch::Sample& sample);
  double workers_waited(uint64_t now);
  void join();
  void help_out();
  void sleep_until_done();

  int n_ids_;
  Activity& activity_;
  std::unique_ptr<Seat[]> seats_;  // of ids 1..n_ids-1
  uint64_t ticket_ = 0;            // of the last region
  Body body_ = nullptr;            // of the region, for the caller
  void* arg_ = nullptr;
  int n_ = 0;
  CallerWatch watch_;
  Arrangement arrangement_;
  uint64_t waits_read_ = 0;                       // when the workers' waits were last read
  alignas(64) std::atomic<uint32_t> pending_{0};  // ids not done, and kCallerSleeps
  alignas(64) std::atomic<uint32_t> arrived_{0};  // at the barrier
  std::atomic<uint32_t> generation_{0};           // of the barrier
  std::atomic<uint32_t> asleep_at_barrier_{0};
};

}  // namespace tenon::host::team
