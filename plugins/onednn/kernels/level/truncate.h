// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tile of f32 or f64 as integers, for exact.h.

#include <cstdint>

namespace tenon::onednn::kernels::TENON_LEVEL {

// As number_cast (../numbers.h) does: cut towards zero within 64 bits, 0 for NaN, then the low
// bits. Of each other number 0 is converted, which the conversion is defined for.
template <class T, class Wide, class Real>
void truncate_tile(const Real* from, int64_t n, void* dst) {
  constexpr bool kHasSign = Wide(-1) < Wide(0);
  constexpr Real kTop = kHasSign ? Real(0x1p63) : Real(0x1p64);
  constexpr Real kBottom = kHasSign ? Real(-0x1p63) : Real(0);
  constexpr Wide kMost = kHasSign ? static_cast<Wide>(INT64_MAX) : static_cast<Wide>(UINT64_MAX);
  constexpr Wide kLeast = kHasSign ? static_cast<Wide>(INT64_MIN) : Wide(0);
  T* to = static_cast<T*>(dst);
  if constexpr (sizeof(T) <= 4) {  // every set of vectors has conversions to 32 bits
    int32_t are_words = 1;
    for (int64_t i = 0; i < n; ++i)
      are_words &= (from[i] < Real(0x1p31)) & (from[i] > Real(-0x1p31)) ? 1 : 0;
    if (are_words == 1) {
      for (int64_t i = 0; i < n; ++i)
        to[i] = static_cast<T>(static_cast<int32_t>(from[i]));
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const Real x = from[i];
    const bool is_above = x >= kTop, is_below = x <= kBottom;
    const Wide whole = static_cast<Wide>((x < kTop) & (x > kBottom) ? x : Real(0));
    to[i] = static_cast<T>(is_above ? kMost : is_below ? kLeast : whole);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
