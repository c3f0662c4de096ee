// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ends the process when a mutant or a graph takes too long. What counts is the processor's time, so
// that a machine with other work finds nothing; standing still ends after ten times as long.

#include <sys/time.h>
#include <unistd.h>

namespace tenon::fuzz {

// From now on; 0: no limit.
inline void limit_seconds(unsigned seconds) {
  itimerval limit{};
  limit.it_value.tv_sec = static_cast<time_t>(seconds);
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(10 * seconds);
}

}  // namespace tenon::fuzz
