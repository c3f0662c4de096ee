// SPDX-License-Identifier: Apache-2.0
#include "lrn.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void normalize_response(const Context& context, const LrnArgs& args) {
  const int64_t row_bytes = args.inner * static_cast<int64_t>(sizeof(float)) * (args.size + 1);
  // Where channels lie side by side, all of one entry at once: they read each other.
  const int64_t group = args.inner == 1 ? args.channels : 1;
  parallel_for(
      context.parallel, args.outer * args.channels / group, grain_rows(row_bytes * group),
      [&](int64_t lo, int64_t hi) { context.table->lrn_rows(args, lo * group, hi * group); });
}

}  // namespace tenon::onednn::kernels
