// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of cached_attention.h, as level/ sees them.

#include <cstdint>

namespace tenon::onednn::kernels {

// One row of queries of each head that shares the keys and values.
struct CachedAttentionPiece {
  const float* q = nullptr;                // [heads, depth], scaled
  const float *k = nullptr, *v = nullptr;  // [keys, depth]
  float* weights = nullptr;                // [heads, weights_pitch]: workspace
  float* dst = nullptr;                    // [heads, depth]
  int64_t heads = 0, depth = 0, keys = 0;  // keys: at least 1
  int64_t weights_pitch = 0;               // keys, rounded up to whole registers (16)
  const float* sinks = nullptr;  // [heads]: a score without a key, whose value is 0; null: none
  float softcap = 0;             // 0: none
};

}  // namespace tenon::onednn::kernels
