// SPDX-License-Identifier: Apache-2.0
#pragma once
// The largest number for which a cost that grows stays within a limit, in few tries.

#include <algorithm>
#include <cstdint>

#include "tenon/sdk/status.hpp"

namespace tenon::trainer {

struct FoundBatch {
  uint64_t batch = 0, bytes = 0;  // batch 0: even 1 is over the limit, with so many bytes
  uint64_t tries = 0;
};

// bytes: of a batch from 1 to most, not less for a larger one. What a step takes is nearly a line
// over the batch, so each try is where the line through the last two meets the limit; the answer
// stands when it fits and one more does not.
template <class Bytes>
Result<FoundBatch> find_batch(uint64_t limit, uint64_t most, const Bytes& bytes) {
  FoundBatch out;
  auto ask = [&](uint64_t batch) -> Result<uint64_t> {
    ++out.tries;
    return bytes(batch);
  };
  TN_TRY(least, ask(1));
  if (least > limit) {
    out.bytes = least;
    return out;
  }
  uint64_t low = 1, low_bytes = least, high = most + 1, next = 8;
  while (high - low > 1) {
    next = std::clamp(next, low + 1, high - 1);
    TN_TRY(asked, ask(next));
    double slope =
        static_cast<double>(asked - std::min(asked, low_bytes)) / static_cast<double>(next - low);
    if (asked <= limit) {
      low = next;
      low_bytes = asked;
    } else {
      high = next;
    }
    auto left = static_cast<double>(high - low - 1);
    double room = slope > 0 ? static_cast<double>(limit - low_bytes) / slope : left;
    // Where it is no line after all: by halves.
    next =
        out.tries > 8 ? low + (high - low) / 2 : low + static_cast<uint64_t>(std::min(room, left));
  }
  out.batch = low;
  out.bytes = low_bytes;
  return out;
}

}  // namespace tenon::trainer
