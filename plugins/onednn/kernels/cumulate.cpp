// SPDX-License-Identifier: Apache-2.0
#include "cumulate.h"

#include <algorithm>

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void cumulate(const Context& context, const CumulateArgs& args) {
  const int64_t n_blocks = (args.inner + kCumulateColumns - 1) / kCumulateColumns;
  const int64_t block_bytes =
      2 * args.k * std::min(args.inner, kCumulateColumns) * static_cast<int64_t>(sizeof(float));
  parallel_for(context.parallel, args.outer * n_blocks, grain_rows(block_bytes),
               [&](int64_t lo, int64_t hi) { context.table->cumulate_blocks(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
