// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the kernels of ctc.h.

#include <cstdint>

namespace tenon::onednn::kernels {

// src: [rows, n] dense. For each row its largest number and the sum of exp(x - largest); where
// `softmax` is not null, [rows, n], also the exponentials over their sum.
struct SoftmaxSums {
  const float* src = nullptr;
  int64_t rows = 0;
  int64_t n = 0;
  float* largest = nullptr;
  float* sums = nullptr;
  float* softmax = nullptr;
};

}  // namespace tenon::onednn::kernels
