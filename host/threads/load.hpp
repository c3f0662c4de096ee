// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether other programs want these CPUs: whether threads that want to run do. A caller compares
// the clock with what it has run; a loop that waits sees the clock jump. Waiting in a loop is worth
// its time on a quiet machine only, where going to sleep and waking costs more (50 us a step on a
// virtual CPU); under load it spends the share of the CPU that the work itself should have.

#include <atomic>
#include <cstdint>

namespace tenon::host::team {

// Shared by all threads. What it says is a hint, so its words are read and written apart.
class Load {
 public:
  // A thread wanted to run for wanted_ns, and was not scheduled for lost_ns of them.
  void report(uint64_t now, uint64_t wanted_ns, uint64_t lost_ns);
  // What was found was a passing one: work makes its full progress.
  void is_over(uint64_t now) { high_until_.store(now, std::memory_order_relaxed); }
  bool is_high(uint64_t now) const { return now < high_until_.load(std::memory_order_relaxed); }

 private:
  void found(uint64_t now);

  // Read by all that wait, so it has a line of the cache to itself.
  alignas(64) std::atomic<uint64_t> high_until_{0};
  // Sums in which older reports count less and less.
  alignas(64) std::atomic<uint64_t> wanted_ns_{0};
  std::atomic<uint64_t> lost_ns_{0};
  std::atomic<uint64_t> hold_ns_{0};  // how long a load counts once it is found
};

// Stands in a loop that waits: keeps the time, sees its own gaps, and reports them.
class WaitClock {
 public:
  explicit WaitClock(Load& load);
  ~WaitClock();
  WaitClock(const WaitClock&) = delete;
  WaitClock& operator=(const WaitClock&) = delete;

  // To be called in each turn; looks at the clock in each 16th. Waited so far.
  uint64_t turn();
  bool load_is_high() const { return load_is_high_; }

 private:
  Load& load_;
  uint64_t begin_;
  uint64_t now_;
  uint64_t lost_ns_ = 0;
  uint32_t turns_ = 0;
  bool load_is_high_;
};

// Of a caller, from region to region of one run: between runs it may well sleep.
class CallerWatch {
 public:
  // Of a part of a run, about a millisecond.
  struct Sample {
    uint64_t now = 0;  // 0: nothing was looked at
    uint64_t wall_ns = 0;
    uint64_t cpu_ns = 0;
    uint64_t lost_ns = 0;  // neither had nor slept
  };

  void begin_run();
  Sample end_run(Load& load);
  Sample region(Load& load);  // now and then in a run
  void slept(uint64_t ns) { slept_ns_ += ns; }

 private:
  Sample look(Load& load, uint64_t now);

  bool is_on_ = false;
  uint64_t begin_ = 0;
  uint64_t cpu_begin_ = 0;
  uint64_t slept_ns_ = 0;  // by its own will
};

}  // namespace tenon::host::team
