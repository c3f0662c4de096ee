// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which CPUs a worker may run on while other programs want them.
//
// A woken worker is often queued on its caller's CPU, behind the caller, while another program has
// the other CPU to itself: it comes when there is nothing left to do. Kept apart from the caller it
// gets its share of the other CPU. And a worker that loses its CPU amid an id holds up the caller
// until the other program's time slice ends; the caller, about to sleep, hands it its own CPU.

#include <atomic>
#include <cstdint>

#include <sched.h>
#include <time.h>

namespace tenon::host::team {

enum class Place : uint8_t {
  kAnywhere,  // wherever the system puts them: no other load wants the CPUs
  kApart,     // on any CPU but the caller's
  kTogether,  // on the caller's CPU: two time-shared CPUs stop each other, one does not
};

// Of one worker. Begun by the worker, moved by its caller.
class Placement {
 public:
  // By the worker, before it looks for ids.
  void begin();
  // Where the worker is to run from now on, if it is not there. Calls into the kernel only when
  // place or the caller's CPU has changed.
  void move(Place place);
  // Onto the caller's CPU, until the next move().
  void hand_over();
  // As last moved; for any thread.
  Place place() const { return place_.load(std::memory_order_relaxed); }
  // What the worker has run so far, in ns: stands still while it waits for a CPU.
  uint64_t cpu_ns() const;
  // How long the worker has waited for a CPU so far, in ns (the kernel's schedstat); 0 where the
  // kernel does not count it. Opens a file: for now and then.
  uint64_t waited_ns() const;

 private:
  void set(const cpu_set_t& mask);

  std::atomic<int> thread_{0};  // its id in the kernel; 0: not begun, or it cannot be moved
  clockid_t clock_ = 0;
  cpu_set_t allowed_{};  // what it began with, or somebody else has set since
  cpu_set_t set_{};      // what was set here last
  std::atomic<Place> place_{Place::kAnywhere};
  int caller_cpu_ = -1;  // that place_ was laid out for
};

}  // namespace tenon::host::team
