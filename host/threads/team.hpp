// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads for one plan's steps: OpenMP's parallel regions on a team in which nobody waits for a
// thread that the system has not scheduled. A region is a body that runs once for each id 0..n-1.
// The caller runs id 0 and, having finished, every id that no worker has begun.
//
//   team::Hold hold(2);             // this thread's regions have up to two ids from here on
//   team::region(body, arg, 2);     // body(arg) runs with id() 0 and 1
//
// How work is cut depends on n alone, so no result depends on load.

#include <cstdint>

namespace tenon::host::team {

using Body = void (*)(void* arg);

// A region in OpenMP's two halves: between them the caller runs body(arg) itself, as id 0.
// n 0: max_threads(). Inside another region n is 1.
void begin(Body body, void* arg, int n);
void end();
inline void region(Body body, void* arg, int n) {
  begin(body, arg, n);
  body(arg);
  end();
}

// What a body asks.
int id();
int size();
bool is_inside();
// Returns when all ids of the region have called it.
void barrier();

// How many ids a region of this thread has where it does not say; at first the process's budget.
int max_threads();

// One run on this thread, until leave(): regions have up to `threads` ids (0: as before) and their
// workers stay at hand from region to region. The token holds what was before.
uint64_t enter(int threads);
void leave(uint64_t token);
// Whether ids of the next regions wait for each other by other ways than barrier(): then all their
// workers are called, however busy the process is.
void set_ids_meet(bool ids_meet);
// Whether each id has a thread. Without, a region whose ids wait for each other never ends.
bool has_all_threads();

class Hold {
 public:
  explicit Hold(int threads) : token_(enter(threads)) {}
  ~Hold() { leave(token_); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  uint64_t token_;
};

}  // namespace tenon::host::team
