// SPDX-License-Identifier: Apache-2.0
#include "reduce.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void reduce(const Context& context, const ReduceArgs& args) {
  const int64_t row_bytes = args.k * element_bytes(args.src.type);
  if (args.inner == 1) {
    parallel_for(context.parallel, args.outer, grain_rows(row_bytes),
                 [&](int64_t lo, int64_t hi) { context.table->reduce_rows(args, lo, hi); });
    return;
  }
  const int64_t blocks = (args.inner + kReduceBlock - 1) / kReduceBlock;
  parallel_for(context.parallel, args.outer * blocks, grain_rows(row_bytes * kReduceBlock),
               [&](int64_t lo, int64_t hi) { context.table->reduce_columns(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
