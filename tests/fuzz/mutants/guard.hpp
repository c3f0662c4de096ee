// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that ends where a page ends which nobody may touch: reading or writing beyond it, or after
// it was given back, ends the process at once, also in code that no sanitizer instruments (oneDNN,
// made at run time, and every plugin of a release build). What lies between the last byte and the
// page, for alignment, is looked at when the memory is given back (Perens' Electric Fence, 1987;
// Chromium's GWP-ASan guards one of many allocations like this).

#include <cstdint>

namespace tenon::fuzz {

// Takes the addresses that guard_memory() hands out, and says how many: before a limit of the
// process's address space is set, which is to hold for what comes beside them.
uint64_t reserve_guarded();

// From now on, of this process: all aligned allocations (tensors, workspaces) and one of `every`
// others, `phase` chooses which; 0: none, and what is guarded stays so. Under AddressSanitizer
// nothing is done: it guards all.
void guard_memory(uint64_t every, uint64_t phase);

}  // namespace tenon::fuzz
