// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a crew's workers are to run, by measurement: beside one busy program they are best kept
// apart from the caller, beside several often together with it, and how many there are and what
// the scheduler does with them cannot be asked. So both are tried, and their progress compared.

#include <cstdint>

#include "threads/load.hpp"
#include "threads/placement.hpp"

namespace tenon::host::team {

// Of one crew; by its caller only.
class Arrangement {
 public:
  Place place() const { return place_; }
  // A region of n ids has ended, of which the caller has run so many.
  void count(uint32_t n, uint32_t by_caller) {
    ++window_.regions;
    window_.ids += n;
    window_.by_caller += by_caller;
  }
  // A worker was found without a CPU.
  void count_help() { ++window_.helped; }
  void look(bool load_is_high, const CallerWatch::Sample& sample);
  // Whether the scheduler has had its time to rearrange: what is seen from now on counts.
  bool is_steady() const { return is_steady_; }
  // Whether enough was seen to judge; then end_window() is due.
  bool is_window_full() const { return is_steady_ && window_.wall_ns > kWindowNs; }
  // workers_waited: the share of the window in which workers that wanted to run had no CPU; 0 where
  // the system does not say.
  void end_window(uint64_t now, double workers_waited);
  // The last window had nearly as many CPUs as a region has ids (beside one busy program it is half
  // a CPU less), or nobody waited for a CPU in it.
  bool is_unhindered() const { return is_unhindered_; }

 private:
  // A trial of the worse place costs at most its window: 3 % at first, and less and less.
  static constexpr uint64_t kFirstTrialNs = 1'500'000'000;
  static constexpr uint64_t kLastTrialNs = 12'000'000'000;
  // Slices of a busy machine are 3 to 4 ms long, so a window has some ten of them.
  static constexpr uint64_t kWindowNs = 40'000'000;

  struct Window {
    uint64_t regions = 0;
    uint64_t helped = 0;
    uint64_t lost_ns = 0;
    uint64_t wall_ns = 0;
    uint64_t cpu_ns = 0;
    uint64_t ids = 0;
    uint64_t by_caller = 0;
  };

  double& speed(Place place) { return place == Place::kApart ? apart_ : together_; }
  void begin_window(Place place);
  bool was_unhindered(double progress, double workers_waited) const;

  Place place_ = Place::kAnywhere;
  Place home_ = Place::kApart;  // the better one, as far as is known
  Window window_;
  bool is_steady_ = false;  // whether the window counts: the scheduler takes a while to rearrange
  bool is_unhindered_ = false;
  // Progress in units of what the caller alone makes with a CPU of its own; 0: not measured yet.
  double apart_ = 0;
  double together_ = 0;
  uint64_t next_trial_ = 0;
  uint64_t trial_every_ns_ = kFirstTrialNs;
};

}  // namespace tenon::host::team
