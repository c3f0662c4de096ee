// SPDX-License-Identifier: Apache-2.0
#include "depthwise.h"

#include <algorithm>

#include "kernel_table.h"

namespace tenon::onednn::kernels {

bool has_fast_depthwise(const Context& context) {
  return context.table == &kernel_table(Level::kAvx512) &&
         __builtin_cpu_supports("avx512vnni") != 0;
}

void pack_depthwise_weights(const int8_t* weights, int64_t channels, int8_t* packed) {
  std::fill_n(packed, depthwise_blocks(channels) * kDepthwiseWeightBytes, int8_t{0});
  for (int64_t c = 0; c < channels; ++c) {
    int8_t* block = packed + c / kDepthwiseBlock * kDepthwiseWeightBytes;
    for (int64_t shift = 0; shift < 2; ++shift) {
      for (int64_t row = 0; row < kDepthwiseTaps; ++row) {
        int8_t* lane =
            block + ((shift * kDepthwiseTaps + row) * kDepthwiseBlock + depthwise_lane(c)) * 4;
        std::copy_n(weights + (c * kDepthwiseTaps + row) * kDepthwiseTaps, kDepthwiseTaps,
                    lane + shift);
      }
    }
  }
}

void depthwise(const Context& context, const DepthwiseArgs& args) {
  const int64_t pairs = (args.out_height + 1) / 2;
  const int64_t row_bytes = 2 * args.out_width * args.channels * (args.stride + 1);
  parallel_for(context.parallel, args.images * pairs, grain_rows(row_bytes),
               [&](int64_t lo, int64_t hi) { context.table->depthwise_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
