// SPDX-License-Identifier: Apache-2.0
#include "max_pool.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void max_pool(const Context& context, const MaxPoolArgs& args) {
  const int64_t row_bytes = args.out_width * args.channels * (args.kernel[0] * args.kernel[1] + 1);
  parallel_for(context.parallel, args.images * args.out_height, grain_rows(row_bytes),
               [&](int64_t lo, int64_t hi) { context.table->max_pool_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
