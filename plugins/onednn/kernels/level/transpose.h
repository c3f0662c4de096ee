// SPDX-License-Identifier: Apache-2.0
#pragma once
// The transpose of as many registers as a register has lanes, of any width and type: interleaved
// log2(lanes) times with the register half of them further on (the perfect shuffle), rows are
// columns.

#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

template <int... i>
struct LaneList {};
// LaneList<0, 1, ..., n - 1>
template <int n, int... i>
struct LanesBelow : LanesBelow<n - 1, n - 1, i...> {};
template <int... i>
struct LanesBelow<0, i...> {
  using List = LaneList<i...>;
};

// Lanes of a and b in turn, from lane `first` of both on.
template <int first, class V, int... i>
[[gnu::always_inline]] inline V interleave(V a, V b, LaneList<i...> /*lanes*/) {
  constexpr int n = sizeof...(i);
  return __builtin_shufflevector(a, b, (first + i / 2 + i % 2 * n)...);
}

template <class V, int n>
[[gnu::always_inline]] inline void transpose(V (&rows)[n]) {
  static_assert(sizeof(V) == n * sizeof(rows[0][0]), "as many registers as lanes");
  using List = typename LanesBelow<n>::List;
#pragma GCC unroll 4
  for (int step = 1; step < n; step *= 2) {
    V next[n];
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = interleave<0>(rows[i], rows[i + n / 2], List());
      next[2 * i + 1] = interleave<n / 2>(rows[i], rows[i + n / 2], List());
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i)
      rows[i] = next[i];
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
