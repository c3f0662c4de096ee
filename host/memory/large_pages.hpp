// SPDX-License-Identifier: Apache-2.0
#pragma once
// Large blocks in large pages, where the system gives them to who asks: a step over hundreds of
// megabytes misses the TLB otherwise. Advice only; what it cannot do is left as it is.

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tenon::host {

inline void prefer_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] uint64_t bytes) {
#ifdef __linux__
  constexpr uint64_t kPage = uint64_t{2} << 20;
  uint64_t begin = (reinterpret_cast<uint64_t>(memory) + kPage - 1) / kPage * kPage;
  uint64_t end = (reinterpret_cast<uint64_t>(memory) + bytes) / kPage * kPage;
  if (memory && begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace tenon::host
