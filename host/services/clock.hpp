// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clock that times are measured by: it never goes back.

#include <chrono>
#include <cstdint>

namespace tenon::host {

inline uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(now / std::chrono::nanoseconds(1));
}

}  // namespace tenon::host
