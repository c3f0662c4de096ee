// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one level joins of exact_reduce.h.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// How a total and an element become a total: kL1 adds magnitudes, kSquares squares.
enum class Join : uint8_t { kSum, kMax, kMin, kProd, kL1, kSquares, kCount };
constexpr bool keeps_an_element(Join join) {
  return join == Join::kMax || join == Join::kMin;
}

// src: [rows, n], whose rows lie row_stride elements apart. Totals are read and written: double of
// reals and 64 bits of integers; of kMax and kMin the element's own type, float of halves.
struct JoinArgs {
  Join join = Join::kSum;
  ElementType type = ElementType::kF64;
  const void* src = nullptr;
  int64_t rows = 1;
  int64_t row_stride = 0;
  int64_t n = 0;
  void* totals = nullptr;
};

}  // namespace tenon::onednn::kernels
