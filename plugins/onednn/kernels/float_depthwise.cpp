// SPDX-License-Identifier: Apache-2.0
#include "float_depthwise.h"

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void float_depthwise(const Context& context, const FloatDepthwiseArgs& args) {
  const Windows& w = args.windows;
  const int64_t pairs = (w.out_height + 1) / 2;
  // A tap takes about as long as half a byte of memory traffic.
  const int64_t row_bytes = 2 * w.out_width * args.channels *
                            (element_bytes(args.type) * (1 + w.stride_y) +
                             w.window_height * w.window_width / 2 + 2 * args.n_ops);
  parallel_for(context.parallel, args.images * pairs, grain_rows(row_bytes),
               [&](int64_t lo, int64_t hi) { context.table->float_depthwise_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
