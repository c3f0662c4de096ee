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

namespace tenon::onednn::team {

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
void set_max_threads(int n);

// One run of a plan on this thread: its workers stay at hand from region to region.
class Hold {
 public:
  explicit Hold(int threads);
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  // Whether each id has a thread. Without, a region whose ids wait for each other never ends.
  bool has_all_threads();
  // Whether ids of the next regions wait for each other by other ways than barrier().
  void set_ids_meet(bool ids_meet);

 private:
  int threads_before_;
  bool ids_met_before_;
};

}  // namespace tenon::onednn::team
