// SPDX-License-Identifier: Apache-2.0
#include "fold.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void fold(const Context& context, const FoldArgs& args) {
  const int64_t rows = args.images * args.channels * args.to[0] * args.to[1];
  const int64_t overlaps = (args.window[2] + args.strides[2] - 1) / args.strides[2];
  const int64_t row_bytes = args.to[2] * (1 + overlaps) * static_cast<int64_t>(sizeof(float));
  parallel_for(context.parallel, rows, grain_rows(row_bytes),
               [&](int64_t lo, int64_t hi) { context.table->fold_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
