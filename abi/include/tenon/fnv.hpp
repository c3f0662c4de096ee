// SPDX-License-Identifier: Apache-2.0
#pragma once
// C++ beside the C headers: a hash of names and texts that is the same in every process and build,
// so that files and random streams can be named by it. Pure: any thread.

#include <cstdint>
#include <string_view>

namespace tenon {

inline constexpr uint64_t kFnvOffset = 14695981039346656037u;

// FNV-1a in 64 bits (Fowler, Noll and Vo). so_far: the hash of what stands before `text`.
constexpr uint64_t fnv1a(std::string_view text, uint64_t so_far = kFnvOffset) {
  for (char c : text)
    so_far = (so_far ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return so_far;
}

}  // namespace tenon
