// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ways a thread waits: in a loop, or asleep in the kernel on a 32-bit word (futex).

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "services/clock.hpp"

namespace tenon::host::team {

inline uint64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// What this thread has run so far. A call into the kernel, 0.3 us.
inline uint64_t own_cpu_ns() {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

// Leaves the core's other hardware thread alone for a moment.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Sleeps while word == expected; returns now and then for no reason.
inline void sleep_on(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

inline void wake_one(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

inline void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tenon::host::team
