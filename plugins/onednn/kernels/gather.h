// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows chosen by index, as Gather on any axis does. Indices may be negative, as in ONNX: -1 is the
// last row. They are checked before anything is written. dst may not overlap the sources. No
// alignment is required.

#include "context.h"
#include "types.h"

namespace tenon::onednn::kernels {

// src: [outer, m, row_bytes] -> dst: [outer, n, row_bytes]
struct GatherArgs {
  const void* src = nullptr;
  void* dst = nullptr;
  int64_t outer = 1;
  int64_t m = 0;
  int64_t row_bytes = 0;
  const void* ids = nullptr;                 // [n]
  ElementType ids_type = ElementType::kI64;  // or kI32
  int64_t n = 0;
};

// The position of the first index that is out of range, or -1 where all are fine.
[[nodiscard]] int64_t gather_rows(const Context& context, const GatherArgs& args);

}  // namespace tenon::onednn::kernels
