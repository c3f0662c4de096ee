// SPDX-License-Identifier: Apache-2.0
#include "softmax.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void softmax(const Context& context, const SoftmaxArgs& args) {
  const int64_t rows = args.dims[0] * args.dims[1] * args.dims[2];
  if (args.n <= 0) return;
  parallel_for(context.parallel, rows, grain_rows(args.n * 16),
               [&](int64_t lo, int64_t hi) { context.table->softmax_rows(args, lo, hi); });
}

void softmax_grad(const Context& context, const SoftmaxGradArgs& args) {
  parallel_for(context.parallel, args.rows, grain_rows(args.n * 16),
               [&](int64_t lo, int64_t hi) { context.table->softmax_grad_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
