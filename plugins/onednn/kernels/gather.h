// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows chosen by index. Indices may be negative, as in ONNX Gather: -1 is the last row. They are
// checked before anything is written; the functions return the position of the first that is out of
// range, or -1 when all are fine.
//
// - gather_rows: src [outer, m, row_bytes], ids [n] -> dst [outer, n, row_bytes]; Gather on any
// axis.
// - embed: the front of a transformer: the sum of up to 3 tables' rows, then a normalisation
// (norm.h;
//   its src is the sum, residual, sum and dst work as there). At most 8192 columns.
// dst may not overlap the sources. No alignment is required.

#include <span>

#include "context.h"
#include "copy_args.h"

namespace tenon::onednn::kernels {

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

[[nodiscard]] int64_t gather_rows(const Context& context, const GatherArgs& args);
// table_rows[k]: the number of rows of tables[k].
[[nodiscard]] int64_t embed(const Context& context,
                            const EmbeddingArgs& args,
                            std::span<const int64_t> table_rows);

}  // namespace tenon::onednn::kernels
