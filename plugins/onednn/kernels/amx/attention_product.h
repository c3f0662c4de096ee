// SPDX-License-Identifier: Apache-2.0
#pragma once
// The products of attention and of its gradient, on tiles that hold up to 32 rows.

#include "../tile_product_args.h"
#include "tiles.h"

namespace tenon::onednn::kernels::amx {

// Rows of a left operand times all panels of a packed right one (attention_pack.h), as f32:
// dst[row][panel * 32 + n].
struct Product {
  const char* left;
  int64_t left_stride;  // bytes
  const uint16_t* right;
  int64_t steps;  // of k
  int64_t panels;
  float* dst;
  int64_t dst_stride;  // elements
};

// has_lower: more than 16 rows. adds: to what dst holds.
template <bool has_lower, bool adds = false>
void multiply(const Product& p) {
  const int64_t stride = p.dst_stride * 4;
  const char* right = reinterpret_cast<const char*>(p.right);
  for (int64_t panel = 0; panel < p.panels; ++panel) {
    const char* upper = p.left;
    const char* lower = p.left + 16 * p.left_stride;
    float* const to = p.dst + panel * kTilePanel;
    float* const below = to + 16 * p.dst_stride;
    if constexpr (adds) {
      _tile_loadd(0, to, stride);
      _tile_loadd(1, to + 16, stride);
    } else {
      _tile_zero(0);
      _tile_zero(1);
    }
    if constexpr (has_lower && adds) {
      _tile_loadd(2, below, stride);
      _tile_loadd(3, below + 16, stride);
    } else if constexpr (has_lower) {
      _tile_zero(2);
      _tile_zero(3);
    }
    for (int64_t step = 0; step < p.steps; ++step) {
      _tile_loadd(6, right, kTileDepth);
      _tile_loadd(4, upper, p.left_stride);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, right + 1024, kTileDepth);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (has_lower) {
        _tile_loadd(5, lower, p.left_stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      upper += kTileDepth;
      lower += kTileDepth;
      right += 2048;
    }
    _tile_stored(0, to, stride);
    _tile_stored(1, to + 16, stride);
    if constexpr (has_lower) {
      _tile_stored(2, below, stride);
      _tile_stored(3, below + 16, stride);
    }
  }
}

}  // namespace tenon::onednn::kernels::amx
