// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers in order: as unsigned keys of their width, which are sorted digit by digit from the
// lowest (Knuth, The Art of Computer Programming, volume 3, 5.2.5). The sort is stable.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/numbers.h"

namespace tenon::onednn {

template <class T>
struct KeyOf {
  using type = std::conditional_t<
      sizeof(T) == 1,
      uint8_t,
      std::conditional_t<sizeof(T) == 2,
                         uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
};
template <class T>
using Key = typename KeyOf<T>::type;

// By its bits, as no instruction compares halves.
template <class T>
bool is_nan(T x) {
  if constexpr (std::is_same_v<T, kernels::Half> || std::is_same_v<T, kernels::Bf16>) {
    constexpr int kInfinity = std::is_same_v<T, kernels::Half> ? 0x7c00 : 0x7f80;
    return (std::bit_cast<uint16_t>(x) & 0x7fff) > kInfinity;
  } else {
    return x != x;
  }
}

// A number of which <, > and == say what they say of x: of a half its magnitude with its sign.
template <class T>
auto comparable(T x) {
  if constexpr (std::is_same_v<T, kernels::Half> || std::is_same_v<T, kernels::Bf16>) {
    const int bits = std::bit_cast<uint16_t>(x), magnitude = bits & 0x7fff;
    return bits == magnitude ? magnitude : -magnitude;
  } else {
    return x;
  }
}

// Keys are ordered as the numbers are: NaN above all others, -0 where 0 is.
template <class T>
Key<T> key_of(T x, bool descending) {
  constexpr Key<T> kTop = static_cast<Key<T>>(Key<T>{1} << (8 * sizeof(T) - 1));
  auto key = std::bit_cast<Key<T>>(x);
  if constexpr (kernels::kIsReal<T>) {
    if (is_nan(x)) {
      key = static_cast<Key<T>>(~Key<T>{0});
    } else if (static_cast<Key<T>>(key << 1) == 0) {
      key = kTop;
    } else {
      key = static_cast<Key<T>>((key & kTop) != 0 ? ~key : key | kTop);
    }
  } else if constexpr (std::is_signed_v<T>) {
    key = static_cast<Key<T>>(key ^ kTop);
  }
  return descending ? static_cast<Key<T>>(~key) : key;
}

template <class U>
struct Entry {
  U key;
  uint32_t index;
};
// By key, equal ones by their index.
template <class U>
bool operator<(const Entry<U>& a, const Entry<U>& b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

// Sorts entries whose indices ascend; where the result lies: in `from` or in `to`.
template <class U>
Entry<U>* sort_by_digits(Entry<U>* from, Entry<U>* to, int64_t n) {
  constexpr size_t kDigits = sizeof(U);
  uint32_t places[kDigits][256] = {};
  auto digit = [](U key, size_t d) { return (key >> (8 * d)) & 255; };
  for (int64_t i = 0; i < n; ++i)
    for (size_t d = 0; d < kDigits; ++d)
      ++places[d][digit(from[i].key, d)];
  for (size_t d = 0; d < kDigits; ++d) {
    if (places[d][digit(from[0].key, d)] == n) continue;  // all have this one
    uint32_t first = 0;
    for (uint32_t& place : places[d])
      first += std::exchange(place, first);
    for (int64_t i = 0; i < n; ++i)
      to[places[d][digit(from[i].key, d)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

// n entries in order; `room` has space for n more.
template <class U>
Entry<U>* in_order(Entry<U>* entries, Entry<U>* room, int64_t n) {
  constexpr int64_t kFew = 64;  // counting digits takes longer there
  if (n >= kFew) return sort_by_digits(entries, room, n);
  std::sort(entries, entries + n);
  return entries;
}

}  // namespace tenon::onednn
