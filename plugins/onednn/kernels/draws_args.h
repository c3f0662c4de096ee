// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arguments of the rows of kernel_table.def that draw random numbers; the contract is in
// draws.h.

#include <cstdint>

namespace tenon::onednn::kernels {

struct Draws {
  uint64_t seed = 0, stream = 0;
  double shift = 0, scale = 1;     // shift + scale x, of each number x
  float largest = 0x1.fffffep-1f;  // of uniform numbers: what would be rounded to 1 becomes this
};

struct DrawArgs {
  Draws of;
  uint64_t block = 0;  // the first
  float* out = nullptr;
  int64_t n = 0;  // numbers, two of each block
};

// The two numbers of kDrawnPairs blocks in f64, neither shifted nor scaled.
constexpr int64_t kDrawnPairs = 256;
struct DrawnPairs {
  uint64_t seed = 0, stream = 0;
  uint64_t block = 0;  // the first
  double *first = nullptr, *second = nullptr;
};

}  // namespace tenon::onednn::kernels
