// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arguments of the rows of kernel_table.def that normalize by the statistics of a batch; the
// contract is in batch_norm.h.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// Rows one behind the other as one run of n elements. What belongs to a channel repeats: tables and
// sums have `period` elements, a multiple of the channels and of a register's lanes, and element i
// of the run has element i % period of each.
struct BatchNormPiece {
  ElementType type = ElementType::kF32;  // of x, dy and out: f32 or bf16
  bool has_relu = false;
  int64_t n = 0, channels = 0, period = 0;
  const void *x = nullptr, *dy = nullptr;
  void* out = nullptr;
  const float *mean = nullptr, *factor = nullptr, *shift = nullptr;  // y = x factor + shift
  const float *constant = nullptr,
              *slope = nullptr;               // dx = dy factor - constant - (x - mean) slope
  float *first = nullptr, *second = nullptr;  // sums
};

}  // namespace tenon::onednn::kernels
