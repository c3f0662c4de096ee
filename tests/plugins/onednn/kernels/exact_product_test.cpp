// SPDX-License-Identifier: Apache-2.0
// Products in f64 and in integers against plain sums.

#include "kernels/exact_product.h"

#include <cmath>

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

struct Size {
  int64_t m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},      {3, 5, 0},       {0, 4, 4},      {4, 0, 4},
                           {1, 40, 7},     {40, 1, 7},      {12, 16, 128},  {13, 33, 31},
                           {97, 8, 3},     {100, 131, 300}, {200, 40, 300}, {24, 32, 64},
                           {97, 541, 129}, {1, 1, 1000},    {200, 1, 259}};

template <class T>
T any_number(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>)
    return std::uniform_real_distribution<T>(-1, 1)(random);
  else
    return static_cast<T>(random());
}

template <class T>
std::vector<T> numbers(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> out(static_cast<size_t>(n) + 1);
  for (T& one : out)
    one = any_number<T>(random);
  return out;
}

class ExactProduct : public EachLevel {
 protected:
  // Two products, of which both have the second right operand; either operand may be transposed.
  template <class T>
  void expect_sums(ElementType type, const Size& size, bool is_a_transposed, bool is_b_transposed) {
    const auto [m, n, k] = size;
    const std::vector<T> a = numbers<T>(2 * m * k, 1), b = numbers<T>(2 * k * n, 2);
    const int64_t a_starts[] = {0, m * k}, b_starts[] = {k * n, k * n};
    std::vector<T> dst(static_cast<size_t>(2 * m * n) + 1, T(77));
    ExactProductArgs args{.type = type, .a = a.data(), .b = b.data(), .dst = dst.data()};
    args.a_row = is_a_transposed ? 1 : k;
    args.a_k = is_a_transposed ? m : 1;
    args.b_k = is_b_transposed ? 1 : n;
    args.b_column = is_b_transposed ? k : 1;
    args.m = m;
    args.n = n;
    args.k = k;
    args.a_starts = a_starts;
    args.b_starts = b_starts;
    std::vector<char> room(static_cast<size_t>(exact_product_bytes(args)));
    args.room = room.data();
    exact_product(context_, args);
    EXPECT_EQ(dst.back(), T(77));
    for (int64_t product = 0; product < 2; ++product)
      for (int64_t row = 0; row < m; ++row)
        for (int64_t column = 0; column < n; ++column) {
          T want = 0, magnitudes = 0;
          for (int64_t i = 0; i < k; ++i) {
            const T x = a[static_cast<size_t>(product * m * k + row * args.a_row + i * args.a_k)];
            const T y = b[static_cast<size_t>(k * n + i * args.b_k + column * args.b_column)];
            want += x * y;
            if constexpr (std::is_floating_point_v<T>) magnitudes += std::abs(x * y);
          }
          const T got = dst[static_cast<size_t>((product * m + row) * n + column)];
          if constexpr (std::is_floating_point_v<T>)
            ASSERT_NEAR(got, want, std::ldexp(static_cast<double>(2 * k), -53) * magnitudes);
          else
            ASSERT_EQ(got, want) << m << " " << n << " " << k;
        }
  }
};

TEST_P(ExactProduct, IsTheSumOfProducts) {
  for (const Size& size : kSizes) {
    for (bool is_a_transposed : {false, true}) {
      for (bool is_b_transposed : {false, true}) {
        expect_sums<double>(ElementType::kF64, size, is_a_transposed, is_b_transposed);
        expect_sums<uint32_t>(ElementType::kI32, size, is_a_transposed, is_b_transposed);
        expect_sums<uint64_t>(ElementType::kU64, size, is_a_transposed, is_b_transposed);
      }
    }
  }
}

TENON_EACH_LEVEL(ExactProduct);

}  // namespace
}  // namespace tenon::onednn::kernels
