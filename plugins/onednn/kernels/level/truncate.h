// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tile of f32 or f64 as integers, for exact.h.

#include <cstdint>

namespace tenon::onednn::kernels::TENON_LEVEL {

// As number_cast (../numbers.h) does, by way of the type with a sign that the processor converts
// to. The upper half of a type without a sign is the lower one and the highest bit.
template <class T, class Signed, class Real>
void truncate_tile(const Real* from, int64_t n, void* dst) {
  constexpr Real kHalf = sizeof(Signed) == 8 ? Real(0x1p63) : Real(0x1p31);
  constexpr auto kLowest = static_cast<Signed>(-kHalf);
  constexpr bool kHasUpper = T(-1) > T(0) && sizeof(T) == sizeof(Signed);
  T* to = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    const bool is_upper = kHasUpper && from[i] >= kHalf;
    const Real x = from[i] - (is_upper ? kHalf : Real(0));
    const bool is_held = (x < kHalf) & (x > -kHalf);
    const auto whole = static_cast<Signed>(is_held ? x : -kHalf);
    to[i] = static_cast<T>(whole ^ (is_upper ? kLowest : Signed(0)));
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
