// SPDX-License-Identifier: Apache-2.0
// Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3, 5.2.2, algorithm M):
// which rows are compared does not depend on the numbers, so that a register compares as many
// columns as it has lanes. Contract in ../sort_args.h.

#include "level.h"
#include "vector_types.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

void store(int64_t* to, Vl x) {
  std::memcpy(to, &x, sizeof x);
}

// Rows a and b of each column, the lesser one first.
template <bool has_indices>
inline void exchange(const SortArgs& args, int64_t a, int64_t b) {
  static_assert(kSortColumns % kHalfLanes == 0);
  a *= kSortColumns;
  b *= kSortColumns;
#pragma GCC unroll 4
  for (int64_t lane = 0; lane < kSortColumns; lane += kHalfLanes) {
    const Vl x = load_vector<Vl>(args.keys + a + lane), y = load_vector<Vl>(args.keys + b + lane);
    Vl swaps = y < x;
    if constexpr (has_indices) {
      const Vl i = load_vector<Vl>(args.indices + a + lane);
      const Vl k = load_vector<Vl>(args.indices + b + lane);
      swaps |= (y == x) & (k < i);
      store(args.indices + a + lane, swaps ? k : i);
      store(args.indices + b + lane, swaps ? i : k);
    }
    store(args.keys + a + lane, swaps ? y : x);
    store(args.keys + b + lane, swaps ? x : y);
  }
}

template <bool has_indices>
void sort(const SortArgs& args) {
  int64_t top = 1;
  while (2 * top < args.n)
    top *= 2;
  for (int64_t p = top; args.n > 1 && p > 0; p /= 2) {
    int64_t q = top, r = 0, distance = p;
    while (true) {
      for (int64_t run = r; run < args.n - distance; run += 2 * p) {
        const int64_t end = run + p < args.n - distance ? run + p : args.n - distance;
        for (int64_t i = run; i < end; ++i)
          exchange<has_indices>(args, i, i + distance);
      }
      if (q == p) break;
      distance = q - p;
      q /= 2;
      r = p;
    }
  }
}

}  // namespace

void sort_columns(const SortArgs& args) {
  args.indices == nullptr ? sort<false>(args) : sort<true>(args);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
