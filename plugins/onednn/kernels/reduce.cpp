// SPDX-License-Identifier: Apache-2.0
#include "reduce.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

// Sums of 8-bit columns, enough of them or enough rows for a register, and few enough for 32 bits.
bool is_sum_of_quantized(const ReduceArgs& args) {
  const bool is_sum = args.kind == Reduction::kSum || args.kind == Reduction::kMean;
  const bool is_quantized = args.src.type == ElementType::kU8 || args.src.type == ElementType::kS8;
  const bool fills = args.inner >= kInt8Lanes || args.k >= kInt8Lanes;
  return is_sum && is_quantized && fills && args.k > 0 && args.k < (1 << 23);
}

}  // namespace

void reduce(const Context& context, const ReduceArgs& args) {
  const int64_t row_bytes = args.k * element_bytes(args.src.type);
  if (args.inner == 1) {
    parallel_for(context.parallel, args.outer, grain_rows(row_bytes),
                 [&](int64_t lo, int64_t hi) { context.table->reduce_rows(args, lo, hi); });
    return;
  }
  const auto run =
      is_sum_of_quantized(args) ? context.table->sum_quantized : context.table->reduce_columns;
  const int64_t blocks = (args.inner + kReduceBlock - 1) / kReduceBlock;
  parallel_for(context.parallel, args.outer * blocks, grain_rows(row_bytes * kReduceBlock),
               [&](int64_t lo, int64_t hi) { run(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
