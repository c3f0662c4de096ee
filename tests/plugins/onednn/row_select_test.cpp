// SPDX-License-Identifier: Apache-2.0
// The first k of a row, by selection, against a stable sort of all.

#include "implementations/row_select.hpp"

#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tenon::onednn {
namespace {

template <class T>
T number(std::mt19937_64& random, bool is_coarse) {
  if (is_coarse && random() % 50 == 0 && kernels::kIsReal<T>) return T(std::nanf(""));
  if (is_coarse) return T(static_cast<float>(random() % 9));
  if constexpr (kernels::kIsReal<T>)
    return T(static_cast<float>(std::normal_distribution<double>()(random)));
  else
    return static_cast<T>(random());
}

template <class T>
struct Row {
  std::vector<T> x;
  int64_t n, stride;
  std::vector<int64_t> order;  // NaN above all numbers, equal ones by their index

  Row(int64_t count, int64_t step, bool is_coarse, bool descending) : n(count), stride(step) {
    std::mt19937_64 random(static_cast<uint64_t>(count));
    for (int64_t i = 0; i < n * stride; ++i)
      x.push_back(number<T>(random, is_coarse));
    order.resize(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    auto at = [&](int64_t i) { return x[static_cast<size_t>(i * stride)]; };
    auto above = [](T a, T b) { return a > b || (a != a && b == b); };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return descending ? above(at(a), at(b)) : above(at(b), at(a));
    });
  }
};

template <class T>
void expect_selected(int64_t n, int64_t k, int64_t stride, bool is_coarse, bool descending) {
  const Row<T> row(n, stride, is_coarse, descending);
  const RowKeys<T> keys = {row.x.data(), stride, descending};
  std::vector<int64_t> want(row.order.begin(), row.order.begin() + k);
  std::vector<Entry<Key<T>>> heap(static_cast<size_t>(k));
  first_few(keys, n, k, heap.data());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(heap[i].index, want[i]) << n << " " << k;

  std::sort(want.begin(), want.end());
  std::vector<Key<T>> room(static_cast<size_t>(n));
  std::vector<T> values(static_cast<size_t>(k * stride) + 1);
  std::vector<int64_t> indices(static_cast<size_t>(k * stride) + 1, -1);
  select_first(keys, n, k, room.data(), values.data(), indices.data());
  for (size_t i = 0; i < want.size(); ++i) {
    const size_t at = i * static_cast<size_t>(stride);
    ASSERT_EQ(indices[at], want[i]) << n << " " << k;
    ASSERT_EQ(key_of(values[at], false),
              key_of(row.x[static_cast<size_t>(want[i] * stride)], false));
  }
  EXPECT_EQ(indices.back(), -1);
}

template <class T>
void expect_all() {
  for (const int64_t n : {1, 2, 100, 20000})
    for (const int64_t k : {int64_t{0}, int64_t{1}, n / 2, n - 1, n})
      for (const bool is_coarse : {false, true})
        for (const bool descending : {false, true})
          expect_selected<T>(n, k, n == 100 ? 3 : 1, is_coarse, descending);
}

TEST(RowSelect, FindsTheFirstOfEveryType) {
  expect_all<double>();
  expect_all<float>();
  expect_all<kernels::Half>();
  expect_all<int64_t>();
  expect_all<int32_t>();
  expect_all<uint16_t>();
  expect_all<uint8_t>();
}

// Every half beside some others.
template <class T>
void expect_halves_as_floats() {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const T a = std::bit_cast<T>(static_cast<uint16_t>(bits));
    const float x = static_cast<float>(a);
    ASSERT_EQ(is_nan(a), x != x) << bits;
    for (uint32_t other = 0; other < 65536; other += 1023) {
      const T b = std::bit_cast<T>(static_cast<uint16_t>(other));
      const float y = static_cast<float>(b);
      if (x != x || y != y) continue;
      ASSERT_EQ(comparable(a) < comparable(b), x < y) << x << " " << y;
      ASSERT_EQ(comparable(a) == comparable(b), x == y) << x << " " << y;
      ASSERT_EQ(key_of(a, false) < key_of(b, false), x < y) << x << " " << y;
    }
  }
}

TEST(RowSelect, OrdersHalvesAsFloats) {
  expect_halves_as_floats<kernels::Half>();
  expect_halves_as_floats<kernels::Bf16>();
}

}  // namespace
}  // namespace tenon::onednn
