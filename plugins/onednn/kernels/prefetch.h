// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of a head that comes next, into L2: they lie far from each other, where no hardware foresees
// them.

#include <cstdint>

namespace tenon::onednn::kernels {

template <class T>
static inline void prefetch_rows(const T* data, int64_t stride, int64_t rows, int64_t columns) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < columns; i += kLine)
      __builtin_prefetch(data + row * stride + i, 0, 2);
}

}  // namespace tenon::onednn::kernels
