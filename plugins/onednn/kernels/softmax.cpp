// SPDX-License-Identifier: Apache-2.0
#include "softmax.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void softmax(const Context& context, const SoftmaxArgs& args) {
  const int64_t rows = args.dims[0] * args.dims[1] * args.dims[2];
  if (args.n <= 0) return;
  const bool has_columns = args.inner > 1;
  const bool is_narrow = args.n <= kSoftmaxNarrow && args.mask.data == nullptr;
  const int64_t n_blocks = (args.inner + kSoftmaxColumns - 1) / kSoftmaxColumns;
  const int64_t in_piece = has_columns ? args.n * kSoftmaxColumns : args.n;
  auto* kernel = has_columns ? context.table->softmax_columns
                 : is_narrow ? context.table->softmax_narrow_rows
                             : context.table->softmax_rows;
  parallel_for(context.parallel, rows * n_blocks, grain_rows(in_piece * 16),
               [&](int64_t lo, int64_t hi) { kernel(args, lo, hi); });
}

void softmax_grad(const Context& context, const SoftmaxGradArgs& args) {
  parallel_for(context.parallel, args.rows, grain_rows(args.n * 16),
               [&](int64_t lo, int64_t hi) { context.table->softmax_grad_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
