// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the system would still give, asked before a large block is taken: it hands out more than it
// has, and ends the process that then writes to it.

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::host {

struct FreeMemory {
  uint64_t bytes;
  std::string where;  // "on this machine", "in control group /user/job"
};
// What this process can still fill: what the machine has free or can free, swap included, and no
// more than any of its control groups (v1 and v2) is allowed, of memory and of swap. nullopt where
// nothing says. root: what stands before /proc and /sys.
std::optional<FreeMemory> free_memory(const std::string& root = "");

// Whether a block can be filled. Small ones are not asked about: that takes a tenth of a
// millisecond, as long as filling one MiB does. TENON_MEMORY_CHECK=off: the system decides alone.
bool fits_memory(uint64_t bytes);
// For the error that follows: "no memory for N bytes, M are free on this machine", and how to have
// it tried all the same.
std::string no_memory_text(uint64_t bytes);

}  // namespace tenon::host
