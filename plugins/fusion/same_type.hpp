// SPDX-License-Identifier: Apache-2.0
#pragma once
// When two values are known to have one type and shape.

#include "tenon/sdk/tensor.hpp"

namespace tenon::fusion {

inline bool same_type(const Type& a, const Type& b) {
  if (a.dtype != b.dtype || a.kind != b.kind || a.dtype == TN_DTYPE_NONE) return false;
  if (!a.ranked || !b.ranked || a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.rank(); ++i) {
    if (a.dims[i] >= 0 && a.dims[i] == b.dims[i]) continue;
    bool symbols = a.dims[i] < 0 && b.dims[i] < 0 && !a.symbols.empty() && !b.symbols.empty();
    if (!symbols || a.symbols[i].empty() || a.symbols[i] != b.symbols[i]) return false;
  }
  return true;
}

}  // namespace tenon::fusion
