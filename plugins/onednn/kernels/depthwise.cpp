// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

#include <algorithm>

#include "kernel_table.h"

namespace tenon::onednn::kernels {

bool has_fast_depthwise(const Context& context) {
  return context.table == &kernel_table(Level::kAvx512) && has_vnni(context);
}

void pack_depthwise_weights(const int8_t* weights,
                            int64_t channels,
                            const Windows& windows,
                            int8_t* packed) {
  const int64_t rows = windows.window_height, taps = windows.window_width;
  const int64_t groups = depthwise_groups(windows), bytes = depthwise_weight_bytes(windows);
  std::fill_n(packed, depthwise_blocks(channels) * bytes, int8_t{0});
  for (int64_t c = 0; c < channels; ++c) {
    int8_t* const block = packed + c / kDepthwiseBlock * bytes;
    for (int64_t column = 0; column < depthwise_columns(windows); ++column) {
      for (int64_t i = 0; i < rows * taps; ++i) {
        const int64_t pixel = column * windows.stride_x + i % taps;
        const int64_t group = (column * rows + i / taps) * groups + pixel / kDepthwisePixels;
        block[(group * kDepthwiseBlock + depthwise_lane(c)) * kDepthwisePixels +
              pixel % kDepthwisePixels] = weights[c * rows * taps + i];
      }
    }
  }
}

void depthwise(const Context& context, const DepthwiseArgs& args) {
  const Windows& w = args.windows;
  const int64_t pairs = (w.out_height + 1) / 2;
  // A tap of a result takes about as long as a ninth of a byte of memory traffic.
  const int64_t row_bytes = 2 * w.out_width * args.channels *
                            (w.stride_y + w.window_height * w.window_width / 9 + args.n_ops);
  parallel_for(context.parallel, args.images * pairs, grain_rows(row_bytes),
               [&](int64_t lo, int64_t hi) { context.table->depthwise_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
