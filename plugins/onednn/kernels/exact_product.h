// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of matrices in f64 and f32, and of integers of 32 and 64 bits, which wrap.
//
//   dst[m, n] = sum_k a[m, k] * b[k, n]      reals fused where the CPU has it
//
// k is in order; for one column of contiguous rows, in order in each of several lanes. Bound of
// reals, against exact arithmetic, eps = 2^-53 in f64 and 2^-24 in f32: k eps sum_k |a| |b|. The
// bits of an element depend neither on the others nor on the number of threads.

#include <span>

#include "context.h"
#include "exact_product_args.h"

namespace tenon::onednn::kernels {

constexpr bool is_exact_product_type(ElementType type) {
  return type == ElementType::kF64 || type == ElementType::kI32 || type == ElementType::kI64 ||
         type == ElementType::kU32 || type == ElementType::kU64;
}

// Matrices of one size; dst is dense, and overlaps neither operand.
struct ExactProductArgs {
  ElementType type = ElementType::kF64;  // is_exact_product_type(), or kF32
  const void* a = nullptr;
  int64_t a_row = 0, a_k = 0;  // strides, in elements
  const void* b = nullptr;
  int64_t b_k = 0, b_column = 0;
  void* dst = nullptr;
  int64_t m = 0, n = 0, k = 0;
  // Where each matrix of a stack begins, in elements; as many as there are products.
  std::span<const int64_t> a_starts = {}, b_starts = {};
  void* room = nullptr;  // exact_product_bytes()
};

// Bytes that products with many rows pack their right operand into. 0: they need none.
int64_t exact_product_bytes(const ExactProductArgs& args);
void exact_product(const Context& context, const ExactProductArgs& args);

}  // namespace tenon::onednn::kernels
