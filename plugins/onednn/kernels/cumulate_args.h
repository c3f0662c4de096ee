// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of cumulate.h, as level/ sees them too.

#include <cstdint>

namespace tenon::onednn::kernels {

constexpr int64_t kCumulateColumns = 512;  // of one piece of work, where there are several

// src, dst: [outer, k, inner]
struct CumulateArgs {
  const float* src = nullptr;
  float* dst = nullptr;
  int64_t outer = 0, k = 0, inner = 0;
  bool is_product = false;
  bool is_exclusive = false;  // what is in front of each number, without it
  bool is_reverse = false;    // from the last number on
};

}  // namespace tenon::onednn::kernels
