// SPDX-License-Identifier: Apache-2.0
#include "threads/load.hpp"

#include <algorithm>
#include <utility>

#include "threads/waiting.hpp"

namespace tenon::host::team {
namespace {

constexpr uint64_t kGapNs = 200'000;        // shorter ones are interrupts
constexpr uint64_t kWindowNs = 20'000'000;  // sums beyond it are halved
// A load that is found counts so long, then a loop may try again: a passing one, as a daemon of the
// system, has gone. One that is back soon counts twice as long each time.
constexpr uint64_t kHoldNs = 10'000'000;
constexpr uint64_t kMostHoldNs = 800'000'000;
constexpr uint64_t kSoonNs = 30'000'000;
constexpr uint64_t kLostShare = 8;       // one part in so many lost is load
constexpr uint64_t kLookNs = 1'000'000;  // a caller looks no more often
constexpr uint64_t kReportNs = 200'000;  // waits without a gap are reported in such sums

// What this thread has waited in loops: a report for each region would move the shared sums from
// core to core while others wait for the region.
thread_local uint64_t unreported_ns = 0;

}  // namespace

void Load::report(uint64_t now, uint64_t wanted_ns, uint64_t lost_ns) {
  uint64_t wanted = wanted_ns_.load(std::memory_order_relaxed) + wanted_ns;
  uint64_t lost = lost_ns_.load(std::memory_order_relaxed) + lost_ns;
  if (lost_ns > 0 && lost * kLostShare > wanted) found(now);
  while (wanted > kWindowNs) {
    wanted /= 2;
    lost /= 2;
  }
  wanted_ns_.store(wanted, std::memory_order_relaxed);
  lost_ns_.store(lost, std::memory_order_relaxed);
}

void Load::found(uint64_t now) {
  const uint64_t until = high_until_.load(std::memory_order_relaxed);
  uint64_t hold = hold_ns_.load(std::memory_order_relaxed);
  // A load that is back soon was never gone: each look for its end costs more than it is worth.
  if (now >= until) hold = now < until + kSoonNs ? std::min(2 * hold, kMostHoldNs) : kHoldNs;
  hold_ns_.store(hold, std::memory_order_relaxed);
  high_until_.store(now + hold, std::memory_order_relaxed);
}

WaitClock::WaitClock(Load& load)
    : load_(load), begin_(now_ns()), now_(begin_), load_is_high_(load.is_high(begin_)) {}

WaitClock::~WaitClock() {
  unreported_ns += now_ - begin_;
  if (lost_ns_ == 0 && unreported_ns < kReportNs) return;
  load_.report(now_, std::exchange(unreported_ns, 0), lost_ns_);
}

uint64_t WaitClock::turn() {
  relax();
  if (++turns_ % 16 == 0) {
    const uint64_t now = now_ns();
    if (now - now_ > kGapNs) lost_ns_ += now - now_;
    now_ = now;
  }
  return now_ - begin_;
}

void CallerWatch::begin_run() {
  const uint64_t now = now_ns();
  is_on_ = now - begin_ > kLookNs;  // many short runs: one of them is enough
  if (!is_on_) return;
  begin_ = now;
  cpu_begin_ = own_cpu_ns();
  slept_ns_ = 0;
}

CallerWatch::Sample CallerWatch::region(Load& load) {
  if (!is_on_) return {};
  const uint64_t now = now_ns();
  return now - begin_ > kLookNs ? look(load, now) : Sample{};
}

CallerWatch::Sample CallerWatch::end_run(Load& load) {
  const Sample last = is_on_ ? look(load, now_ns()) : Sample{};
  is_on_ = false;
  return last;
}

CallerWatch::Sample CallerWatch::look(Load& load, uint64_t now) {
  const uint64_t cpu = own_cpu_ns();
  Sample sample{now, now - begin_, cpu - cpu_begin_};
  const uint64_t wanted = sample.wall_ns - std::min(slept_ns_, sample.wall_ns);
  sample.lost_ns = wanted - std::min(sample.cpu_ns, wanted);
  if (sample.lost_ns <= kGapNs) sample.lost_ns = 0;
  load.report(now, wanted, sample.lost_ns);
  begin_ = now;
  cpu_begin_ = cpu;
  slept_ns_ = 0;
  return sample;
}

}  // namespace tenon::host::team
