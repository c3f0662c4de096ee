// SPDX-License-Identifier: Apache-2.0
#include "draws.h"

#include <algorithm>

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void draw_uniform(const Context& context, uint64_t seed, uint64_t stream, float* out, int64_t n) {
  // A number takes about as long as 16 bytes of traffic.
  parallel_for(context.parallel, (n + 1) / 2, grain_rows(2 * 16), [&](int64_t lo, int64_t hi) {
    const DrawArgs args{seed, stream, static_cast<uint64_t>(lo), out + 2 * lo,
                        std::min(2 * hi, n) - 2 * lo};
    context.table->uniform_blocks(args);
  });
}

}  // namespace tenon::onednn::kernels
