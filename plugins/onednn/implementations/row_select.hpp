// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first k of a row without ordering the others: few by a heap, many by their last key, which is
// found among the keys whose high digit it has (Knuth, The Art of Computer Programming, volume 3,
// 5.3.3).

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include "dense.hpp"
#include "kernels/scratch.h"
#include "row_order.hpp"

namespace tenon::onednn {

// The numbers of a row as keys (row_order.hpp).
template <class T>
struct RowKeys {
  const T* src;
  int64_t stride;
  bool descending;
  Key<T> operator()(int64_t i) const { return key_of(src[i * stride], descending); }
};

// Whether one of `count` numbers from `begin` on may come before the number `last`. Numbers that
// lie side by side are compared in vectors: the loop has no branch.
template <class T>
bool may_precede(const RowKeys<T>& keys, int64_t begin, int64_t count, int64_t last) {
  if constexpr (std::is_floating_point_v<T>) {
    if (keys.stride == 1) {
      const T* const src = keys.src + begin;
      const T limit = keys.src[last];
      auto any = [&](const auto& is_behind) {
        Key<T> found = 0;
        for (int64_t i = 0; i < count; ++i)
          found |= is_behind(src[i], limit) ? Key<T>{0} : Key<T>{1};  // NaN is not
        return found != 0;
      };
      return keys.descending ? any(std::less_equal<>()) : any(std::greater_equal<>());
    }
  }
  Key<T> least = keys(begin);
  for (int64_t i = begin + 1; i < begin + count; ++i) {
    const Key<T> key = keys(i);
    least = key < least ? key : least;
  }
  return least < keys(last);
}

// The first k of n in order, equal ones by their index; heap: room for k. Most blocks have nothing
// that comes before the last of them.
template <class T>
void first_few(const RowKeys<T>& keys, int64_t n, int64_t k, Entry<Key<T>>* heap) {
  if (k == 0) return;
  for (int64_t i = 0; i < k; ++i)
    heap[i] = {keys(i), static_cast<uint32_t>(i)};
  std::make_heap(heap, heap + k);
  constexpr int64_t kBlock = 32;
  for (int64_t begin = k; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    if (!may_precede(keys, begin, count, heap[0].index)) continue;
    for (int64_t i = begin; i < begin + count; ++i) {
      const Key<T> key = keys(i);
      if (key >= heap[0].key) continue;  // of equal ones the earlier stays
      std::pop_heap(heap, heap + k);
      heap[k - 1] = {key, static_cast<uint32_t>(i)};
      std::push_heap(heap, heap + k);
    }
  }
  std::sort_heap(heap, heap + k);
}

constexpr int64_t kSelectColumns = 256;

// The first of each of n columns, at most kSelectColumns, that lie beside each other in rows whose
// distance is keys.stride; either target may be null.
template <class T>
void first_of_block(
    const RowKeys<T>& keys, int64_t n_rows, int64_t n, T* values, int64_t* indices) {
  Key<T> best[kSelectColumns];
  Key<T> at[kSelectColumns];  // of the width of the keys, so that lanes fit
  for (int64_t c = 0; c < n; ++c) {
    best[c] = key_of(keys.src[c], keys.descending);
    at[c] = 0;
  }
  for (int64_t row = 1; row < n_rows; ++row) {
    const T* src = keys.src + row * keys.stride;
    for (int64_t c = 0; c < n; ++c) {
      const Key<T> key = key_of(src[c], keys.descending);
      const bool is_before = key < best[c];
      best[c] = is_before ? key : best[c];
      at[c] = is_before ? static_cast<Key<T>>(row) : at[c];
    }
  }
  for (int64_t c = 0; c < n; ++c) {
    const auto row = static_cast<int64_t>(at[c]);
    if (values != nullptr) values[c] = keys.src[row * keys.stride + c];
    if (indices != nullptr) indices[c] = row;
  }
}

// Whether first_of_columns takes them: an index has to fit into the width of a key.
template <class T>
bool has_columns(const AxisSplit& split) {
  return split.inner > 1 && static_cast<uint64_t>(split.k) <= std::numeric_limits<Key<T>>::max();
}

// The first along the middle axis of [outer, k, inner], with NaN as the largest, and the earliest
// of equal ones; values, indices: [outer, inner], either may be null.
template <class T>
void first_of_columns(const kernels::Context& context,
                      const AxisSplit& split,
                      bool wants_largest,
                      const T* src,
                      T* values,
                      int64_t* indices) {
  const int64_t n_blocks = (split.inner + kSelectColumns - 1) / kSelectColumns;
  const int64_t widest = std::min(split.inner, kSelectColumns);
  kernels::parallel_for(
      context.parallel, split.outer * n_blocks, kernels::grain_rows(split.k * widest * 8),
      [&](int64_t lo, int64_t hi) {
        for (int64_t block = lo; block < hi; ++block) {
          const int64_t outer = block / n_blocks, first = block % n_blocks * kSelectColumns;
          const int64_t to = outer * split.inner + first;
          const RowKeys<T> keys{src + outer * split.k * split.inner + first, split.inner,
                                wants_largest};
          first_of_block(keys, split.k, std::min(kSelectColumns, split.inner - first),
                         values == nullptr ? nullptr : values + to,
                         indices == nullptr ? nullptr : indices + to);
        }
      });
}

// The last key of the first k, and how many of the first k have it.
template <class U>
struct LastKey {
  U key;
  int64_t n_equal;
};

// The high digit of a key, of which there are 2^16 at most.
template <class U>
uint32_t high_digit(U key) {
  constexpr int kShift = sizeof(U) <= 2 ? 0 : 8 * (static_cast<int>(sizeof(U)) - 2);
  return static_cast<uint32_t>(key >> kShift);
}

// 1 <= k <= n; room: n keys
template <class T>
LastKey<Key<T>> last_key(const RowKeys<T>& keys, int64_t n, int64_t k, Key<T>* room) {
  constexpr int64_t kDigits = sizeof(T) == 1 ? 256 : 65536;
  constexpr int64_t kMany = 1 << 14;  // so that counting digits pays
  int64_t n_kept = 0, n_before = 0;
  if (n < kMany) {
    for (; n_kept < n; ++n_kept)
      room[n_kept] = keys(n_kept);
  } else {
    auto* counts = reinterpret_cast<uint32_t*>(kernels::scratch_of_thread(kDigits * 4));
    std::fill_n(counts, kDigits, 0U);
    for (int64_t i = 0; i < n; ++i)
      ++counts[high_digit(keys(i))];
    uint32_t digit = 0;
    for (; n_before + counts[digit] < k; ++digit)
      n_before += counts[digit];
    for (int64_t i = 0; i < n; ++i) {
      const Key<T> key = keys(i);
      if (high_digit(key) == digit) room[n_kept++] = key;
    }
  }
  const int64_t at = k - n_before - 1;
  std::nth_element(room, room + at, room + n_kept);
  const Key<T> last = room[at];
  const int64_t n_less =
      n_before + std::count_if(room, room + at, [&](auto x) { return x < last; });
  return {last, k - n_less};
}

// The first k in the order of their indices; either target may be null. What is written counts only
// if it is among them, so that no branch depends on the numbers.
template <class T>
void select_first(
    const RowKeys<T>& keys, int64_t n, int64_t k, Key<T>* room, T* values, int64_t* indices) {
  if (k == 0) return;
  auto [last, n_equal] = last_key(keys, n, k, room);
  for (int64_t i = 0, found = 0; found < k; ++i) {
    if (values != nullptr) values[found * keys.stride] = keys.src[i * keys.stride];
    if (indices != nullptr) indices[found * keys.stride] = i;
    const Key<T> key = keys(i);
    const int64_t is_equal = key == last && n_equal > 0 ? 1 : 0;
    n_equal -= is_equal;
    found += key < last ? 1 : is_equal;
  }
}

}  // namespace tenon::onednn
