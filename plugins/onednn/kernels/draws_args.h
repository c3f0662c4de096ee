// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arguments of the rows of kernel_table.def that draw random numbers; the contract is in
// draws.h.

#include <cstdint>

namespace tenon::onednn::kernels {

struct Uniform {
  uint64_t seed = 0, stream = 0;
  double low = 0, scale = 1;
};

struct DrawArgs {
  Uniform of;
  uint64_t block = 0;  // the first
  float* out = nullptr;
  int64_t n = 0;  // numbers, two of each block
};

}  // namespace tenon::onednn::kernels
