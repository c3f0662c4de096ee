// SPDX-License-Identifier: Apache-2.0
#pragma once
// When two values are known to have one type and shape.

#include "tenon/sdk/tensor.hpp"

namespace tenon::fusion {

// Sizes of two axes, by number or by name.
inline bool same_size(const Type& a, size_t i, const Type& b, size_t j) {
  if (a.dims[i] >= 0 || b.dims[j] >= 0) return a.dims[i] == b.dims[j];
  return !a.symbols.empty() && !b.symbols.empty() && !a.symbols[i].empty() &&
         a.symbols[i] == b.symbols[j];
}

inline bool same_type(const Type& a, const Type& b) {
  if (a.dtype != b.dtype || a.kind != b.kind || a.dtype == TN_DTYPE_NONE) return false;
  if (!a.ranked || !b.ranked || a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.rank(); ++i)
    if (!same_size(a, i, b, i)) return false;
  return true;
}

}  // namespace tenon::fusion
