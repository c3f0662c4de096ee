// SPDX-License-Identifier: Apache-2.0
#include "load.hpp"

#include <algorithm>

#include "waiting.hpp"

namespace tenon::onednn::team {
namespace {

constexpr uint64_t kGapNs = 200'000;        // shorter ones are interrupts
constexpr uint64_t kWindowNs = 20'000'000;  // sums beyond it are halved
constexpr uint64_t kHighNs = 100'000'000;   // then a loop may try again
constexpr uint64_t kLostShare = 8;          // one part in so many lost is load
constexpr uint64_t kLookNs = 1'000'000;     // a caller looks no more often

}  // namespace

void Load::report(uint64_t now, uint64_t wanted_ns, uint64_t lost_ns) {
  uint64_t wanted = wanted_ns_.load(std::memory_order_relaxed) + wanted_ns;
  uint64_t lost = lost_ns_.load(std::memory_order_relaxed) + lost_ns;
  if (lost_ns > 0 && lost * kLostShare > wanted)
    high_until_.store(now + kHighNs, std::memory_order_relaxed);
  while (wanted > kWindowNs) {
    wanted /= 2;
    lost /= 2;
  }
  wanted_ns_.store(wanted, std::memory_order_relaxed);
  lost_ns_.store(lost, std::memory_order_relaxed);
}

WaitClock::WaitClock(Load& load)
    : load_(load), begin_(now_ns()), now_(begin_), load_is_high_(load.is_high(begin_)) {}

WaitClock::~WaitClock() {
  if (now_ > begin_) load_.report(now_, now_ - begin_, lost_ns_);
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

void CallerWatch::region(Load& load) {
  if (!is_on_) return;
  if (const uint64_t now = now_ns(); now - begin_ > kLookNs) look(load, now);
}

void CallerWatch::end_run(Load& load) {
  if (is_on_) look(load, now_ns());
  is_on_ = false;
}

void CallerWatch::look(Load& load, uint64_t now) {
  const uint64_t cpu = own_cpu_ns();
  const uint64_t wanted = now - begin_ - std::min(slept_ns_, now - begin_);
  const uint64_t lost = wanted - std::min(cpu - cpu_begin_, wanted);
  load.report(now, wanted, lost > kGapNs ? lost : 0);
  begin_ = now;
  cpu_begin_ = cpu;
  slept_ns_ = 0;
}

}  // namespace tenon::onednn::team
