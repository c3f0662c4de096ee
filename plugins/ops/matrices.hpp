// SPDX-License-Identifier: Apache-2.0
#pragma once
// Linear operators as products with constant matrices, for their decompose columns.

#include "tenon/sdk/build.hpp"

namespace tenon::ops {

// Numbers as a constant of this type.
inline Value constant_of(Builder& b,
                         uint32_t dtype,
                         const std::vector<int64_t>& dims,
                         const std::vector<double>& numbers) {
  if (dtype == TN_F64) return b.take(b.edit().constant<double>(TN_F64, dims, numbers));
  std::vector<float> single(numbers.begin(), numbers.end());
  Value value = b.take(b.edit().constant<float>(TN_F32, dims, single));
  return dtype == TN_F32 ? value : b.cast(value, dtype);
}

// A product with a matrix pays while the matrix is small: 64 MiB of f32.
constexpr int64_t kMostMatrixNumbers = int64_t{1} << 24;

// Says no to a matrix of so many rows and columns that is too large to be made.
inline Status check_matrix(int64_t rows, int64_t columns) {
  if (rows >= 0 && columns >= 0 && (rows == 0 || columns <= kMostMatrixNumbers / rows)) return {};
  return unsupported(cat("composite where the matrix has at most ", kMostMatrixNumbers,
                         " numbers, got ", rows, " x ", columns));
}

// The order of axes that has `axis` in place of `to`, with the others as they are.
inline std::vector<int64_t> swapped(size_t rank, size_t axis, size_t to) {
  std::vector<int64_t> perm;
  for (size_t i = 0; i < rank; ++i)
    perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[axis], perm[to]);
  return perm;
}
// x with its last two axes swapped.
inline Value swapped(Builder& b, Value x, size_t rank) {
  return b.transpose(x, swapped(rank, rank - 1, rank - 2));
}

}  // namespace tenon::ops
