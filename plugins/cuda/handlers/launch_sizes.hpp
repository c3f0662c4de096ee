// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many blocks and threads a kernel gets. All kernels stride over what is left.

#include <algorithm>
#include <cstdint>

#include "plan.hpp"

namespace tenon::cuda {

// A thread for each of `count` elements, 256 in a block.
constexpr uint32_t kElementBlock = 256;
inline uint32_t element_grid(uint64_t count) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((count + kElementBlock - 1) / kElementBlock, 1, 1u << 16));
}

// A block for each row: whole warps, at most 256 threads.
inline uint32_t row_block(uint64_t cols) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((cols + 31) / 32 * 32, 32, 256));
}
inline uint32_t row_grid(uint64_t rows) {
  return static_cast<uint32_t>(std::min<uint64_t>(rows, 1u << 20));
}

// A warp for each row where it is short enough for registers and its elements are neighbours, by
// the kernel whose name has "_warps" in front of the type; else a block.
inline Launch row_launch(Launch made, uint64_t rows, uint64_t cols, bool are_neighbours) {
  constexpr uint64_t kMostInRegisters = 1024, kWarpsOfBlock = 8;
  bool by_warps = are_neighbours && cols <= kMostInRegisters;
  if (by_warps) made.symbol.insert(made.symbol.rfind('_'), "_warps");
  made.block = by_warps ? kWarpsOfBlock * 32 : row_block(cols);
  made.grid = row_grid(by_warps ? (rows + kWarpsOfBlock - 1) / kWarpsOfBlock : rows);
  return made;
}

}  // namespace tenon::cuda
