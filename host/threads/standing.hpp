// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a thread stands: which id of which region it runs, and how it rounds.

#include <cfenv>
#include <cstdint>

namespace tenon::host::team {

class Crew;

struct Standing {
  Crew* crew = nullptr;  // nullptr: outside of regions
  int id = 0;
  int n = 1;
};

Standing& standing();  // of this thread

// Rounding and treatment of denormals, which an id takes from the caller whoever runs it.
#if defined(__x86_64__)
inline uint32_t float_mode() {
  return __builtin_ia32_stmxcsr() & ~uint32_t{0x3F};  // without the flags of what happened
}
inline void set_float_mode(uint32_t mode) {
  __builtin_ia32_ldmxcsr(mode);
}
#else
inline uint32_t float_mode() {
  return static_cast<uint32_t>(std::fegetround());
}
inline void set_float_mode(uint32_t mode) {
  std::fesetround(static_cast<int>(mode));
}
#endif

}  // namespace tenon::host::team
