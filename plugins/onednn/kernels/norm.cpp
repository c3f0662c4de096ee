// SPDX-License-Identifier: Apache-2.0
#include "norm.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void normalize(const Context& context, const NormArgs& args) {
  if (args.n <= 0) return;
  parallel_for(context.parallel, args.rows, grain_rows(args.n * 12),
               [&](int64_t lo, int64_t hi) { context.table->norm_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
