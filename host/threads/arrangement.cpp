// SPDX-License-Identifier: Apache-2.0
#include "threads/arrangement.hpp"

#include <algorithm>

namespace tenon::host::team {
namespace {

constexpr uint64_t kRearrangeNs = 12'000'000;
// Less than a busy program takes of a CPU that it shares.
constexpr double kUnhindered = 0.35;
constexpr double kLeastWaited = 1.0 / 32;  // of a window: less is what the system itself takes

Place other(Place place) {
  return place == Place::kApart ? Place::kTogether : Place::kApart;
}

}  // namespace

void Arrangement::look(bool load_is_high, const CallerWatch::Sample& sample) {
  is_unhindered_ = false;
  if (!load_is_high) {
    place_ = Place::kAnywhere;
    return;
  }
  if (place_ == Place::kAnywhere) return begin_window(home_);
  window_.wall_ns += sample.wall_ns;
  window_.cpu_ns += sample.cpu_ns;
  window_.lost_ns += sample.lost_ns;
  if (is_steady_ || window_.wall_ns <= kRearrangeNs) return;
  window_ = {};
  is_steady_ = true;
}

void Arrangement::begin_window(Place place) {
  is_steady_ = place == place_;
  place_ = place;
  window_ = {};
}

bool Arrangement::was_unhindered(double progress, double workers_waited) const {
  if (place_ == Place::kTogether) return false;
  const double n = static_cast<double>(window_.ids) /
                   static_cast<double>(std::max<uint64_t>(window_.regions, 1));
  const double caller_waited =
      static_cast<double>(window_.lost_ns) / static_cast<double>(window_.wall_ns);
  const bool nobody_waited =
      window_.helped == 0 && std::max(caller_waited, workers_waited) < kLeastWaited;
  return n > 1 && (progress > n - kUnhindered || nobody_waited);
}

void Arrangement::end_window(uint64_t now, double workers_waited) {
  // The caller ran its part of the ids in its CPU time, the workers theirs meanwhile.
  const double share = static_cast<double>(window_.cpu_ns) / static_cast<double>(window_.wall_ns);
  const double found = share * static_cast<double>(window_.ids) /
                       static_cast<double>(std::max<uint64_t>(window_.by_caller, 1));
  is_unhindered_ = was_unhindered(found, workers_waited);
  if (is_unhindered_) return begin_window(home_);
  double& known = speed(place_);
  known = known == 0 ? found : (known + found) / 2;
  const bool was_trial = place_ != home_;
  const Place better = apart_ >= together_ ? Place::kApart : Place::kTogether;
  if (was_trial) {
    trial_every_ns_ = better == home_ ? std::min(2 * trial_every_ns_, kLastTrialNs) : kFirstTrialNs;
    next_trial_ = now + trial_every_ns_;
  }
  if (speed(other(home_)) != 0) home_ = better;
  const bool try_other = !was_trial && now >= next_trial_;
  begin_window(try_other ? other(home_) : home_);
}

}  // namespace tenon::host::team
