// SPDX-License-Identifier: Apache-2.0
#include "lrn.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void normalize_response(const Context& context, const LrnArgs& args) {
  const int64_t row_bytes = args.inner * static_cast<int64_t>(sizeof(float)) * (args.size + 1);
  parallel_for(context.parallel, args.outer * args.channels, grain_rows(row_bytes),
               [&](int64_t lo, int64_t hi) { context.table->lrn_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
