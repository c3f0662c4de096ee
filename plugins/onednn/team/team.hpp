// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parallel regions on the host's threads (service tenon.host.team/1, which says what holds).

#include "tenon/sdk/services.hpp"

namespace tenon::onednn::team {

using Body = void (*)(void* arg);

inline void begin(Body body, void* arg, int n) {
  services.team->begin(static_cast<uint32_t>(n), body, arg);
}
inline void end() {
  services.team->end();
}
inline void region(Body body, void* arg, int n) {
  begin(body, arg, n);
  body(arg);
  end();
}

inline int id() {
  return static_cast<int>(services.team->id());
}
inline int size() {
  return static_cast<int>(services.team->size());
}
inline bool is_inside() {
  return services.team->is_inside() != 0;
}
inline void barrier() {
  services.team->barrier();
}
inline int max_threads() {
  return static_cast<int>(services.team->max_threads());
}

// One run of a plan on this thread: its workers stay at hand from region to region.
class Hold {
 public:
  explicit Hold(int threads) : token_(services.team->enter(static_cast<uint32_t>(threads))) {}
  ~Hold() { services.team->leave(token_); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  // Whether each id has a thread. Without, a region whose ids wait for each other never ends.
  bool has_all_threads() { return services.team->has_all_threads() != 0; }
  // Whether ids of the next regions wait for each other by other ways than barrier().
  // A Hold within this one leaves all as it was.
  void set_ids_meet(bool ids_meet) {
    if (is_set_ && ids_meet_ == ids_meet) return;
    services.team->set_ids_meet(ids_meet ? 1 : 0);
    is_set_ = true;
    ids_meet_ = ids_meet;
  }

 private:
  bool is_set_ = false;
  bool ids_meet_ = false;
  uint64_t token_;
};

}  // namespace tenon::onednn::team
