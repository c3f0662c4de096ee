// SPDX-License-Identifier: Apache-2.0
#include "draws.h"

#include <algorithm>

#include "kernel_table.h"

namespace tenon::onednn::kernels {

void draw_uniform(const Context& context, const Uniform& of, float* out, int64_t n) {
  // A number takes about as long as 16 bytes of traffic.
  parallel_for(context.parallel, (n + 1) / 2, grain_rows(2 * 16), [&](int64_t lo, int64_t hi) {
    context.table->uniform_blocks(
        {of, static_cast<uint64_t>(lo), out + 2 * lo, std::min(2 * hi, n) - 2 * lo});
  });
}

}  // namespace tenon::onednn::kernels
