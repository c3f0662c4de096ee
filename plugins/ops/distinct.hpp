// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of n things are equal: the numbers or slices that Unique finds.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::ops {

// Groups of equal things: the first of each, its size, and the group of every thing.
struct Distinct {
  std::vector<int64_t> first, of, count;
};

// order[i]: the group that becomes group i.
inline Distinct reordered(const Distinct& groups, const std::vector<int64_t>& order) {
  Distinct out;
  std::vector<int64_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<size_t>(order[i]);
    out.first.push_back(groups.first[from]);
    out.count.push_back(groups.count[from]);
    place[from] = static_cast<int64_t>(i);
  }
  out.of.reserve(groups.of.size());
  for (int64_t group : groups.of)
    out.of.push_back(place[static_cast<size_t>(group)]);
  return out;
}

// In the order of what `less` compares the firsts of two groups by.
template <class Less>
Distinct reordered_by(const Distinct& groups, const Less& less) {
  std::vector<int64_t> order(groups.first.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return less(groups.first[static_cast<size_t>(a)], groups.first[static_cast<size_t>(b)]);
  });
  return reordered(groups, order);
}

// Of the things in order, where equal ones are in the order of their indices.
template <class Less>
Distinct of_ordered(const std::vector<int64_t>& order, const Less& less) {
  Distinct out;
  out.of.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || less(order[i - 1], order[i])) {
      out.first.push_back(order[i]);
      out.count.push_back(0);
    }
    ++out.count.back();
    out.of[static_cast<size_t>(order[i])] = static_cast<int64_t>(out.first.size()) - 1;
  }
  return out;
}

// Whether x is before y; NaN comes last.
template <class W>
bool is_before(W x, W y) {
  return x < y || (x == x && y != y);
}

// Equal numbers have equal bits: NaN counts as one number, and -0 as 0.
template <class W>
uint64_t bits_of(W x) {
  if (x != x) return ~uint64_t{0};
  return x == W(0) ? 0 : std::bit_cast<uint64_t>(x);
}

// Groups of numbers in the order of their first occurrence, by a table with open addressing (Knuth,
// The Art of Computer Programming, volume 3, 6.4, algorithm L) that doubles when it is half full.
// Nothing where more than `most` are distinct.
template <class At>
std::optional<Distinct> distinct_by_table(int64_t n, int64_t most, const At& at) {
  struct Slot {
    uint64_t bits = 0;
    int64_t group = -1;
  };
  std::vector<Slot> slots(1024);
  int shift = 64 - 10;
  auto slot_of = [&](uint64_t bits) -> Slot& {
    size_t i = (bits * 0x9e3779b97f4a7c15U) >> shift;
    while (slots[i].group >= 0 && slots[i].bits != bits)
      i = (i + 1) & (slots.size() - 1);
    return slots[i];
  };
  Distinct out;
  out.of.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t bits = bits_of(at(i));
    Slot* slot = &slot_of(bits);
    if (slot->group < 0) {
      if (static_cast<int64_t>(out.first.size()) == most) return std::nullopt;
      *slot = {bits, static_cast<int64_t>(out.first.size())};
      out.first.push_back(i);
      out.count.push_back(0);
    }
    const int64_t group = slot->group;
    ++out.count[static_cast<size_t>(group)];
    out.of[static_cast<size_t>(i)] = group;
    if (out.first.size() * 2 < slots.size()) continue;
    const std::vector<Slot> old = std::exchange(slots, std::vector<Slot>(slots.size() * 2));
    --shift;
    for (const Slot& kept : old)
      if (kept.group >= 0) slot_of(kept.bits) = kept;
  }
  return out;
}

// at(i): number i, a double or an integer of 64 bits.
template <class At>
Distinct distinct_numbers(int64_t n, bool is_sorted, const At& at) {
  using W = decltype(at(0));
  auto less = [&](int64_t a, int64_t b) { return is_before(at(a), at(b)); };
  // A table of more numbers is slower than a sort.
  if (std::optional<Distinct> found = distinct_by_table(n, std::max<int64_t>(64, n / 16), at))
    return is_sorted ? reordered_by(*found, less) : *found;
  struct Number {
    W value;
    int64_t index;
  };
  std::vector<Number> numbers;
  numbers.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    numbers.push_back({at(i), i});
  std::sort(numbers.begin(), numbers.end(), [](const Number& a, const Number& b) {
    return is_before(a.value, b.value) || (!is_before(b.value, a.value) && a.index < b.index);
  });
  std::vector<int64_t> order;
  order.reserve(numbers.size());
  for (const Number& number : numbers)
    order.push_back(number.index);
  const Distinct found = of_ordered(order, less);
  return is_sorted ? found : reordered_by(found, std::less<>());
}

// less compares slices.
template <class Less>
Distinct distinct_slices(int64_t n, bool is_sorted, const Less& less) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), less);
  const Distinct found = of_ordered(order, less);
  return is_sorted ? found : reordered_by(found, std::less<>());
}

}  // namespace tenon::ops
