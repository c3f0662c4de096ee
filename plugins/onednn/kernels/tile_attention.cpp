// SPDX-License-Identifier: Apache-2.0
#include "tile_attention.h"

#include <algorithm>

#include "scratch.h"
#include "tile_product_args.h"

namespace tenon::onednn::kernels {
namespace {

AttentionScratch lay_out(const TileAttentionArgs& args) {
  AttentionScratch made;
  made.depth_bytes = round_up(args.depth * 2, kTileDepth);
  made.padded_keys = round_up(args.keys, kTilePanel);
  auto take = [&](int64_t bytes) {
    const int64_t at = made.bytes;
    made.bytes += round_up(bytes, kTileDepth);
    return at;
  };
  made.keys_at = take(made.padded_keys * made.depth_bytes);
  const int64_t padded_width = round_up(args.width, kTilePanel);
  made.values_at = take(made.padded_keys * padded_width * 2);
  made.rows_at = take(kTileRows * made.depth_bytes);
  // The result's rows follow the scores there.
  made.scores_at = take(kTileRows * std::max(made.padded_keys, padded_width) * 4);
  made.weights_at = take(kTileRows * made.padded_keys * 2);
  made.mask_at = take(made.padded_keys * 4);
  return made;
}

}  // namespace

bool takes_tile_attention(const AttentionSizes& args) {
  const bool is_small = args.keys > 0 && args.keys <= kMostAttentionKeys && args.depth > 0 &&
                        args.depth <= kMostAttentionDepth && args.width > 0 &&
                        args.width <= kMostAttentionDepth;
  return is_small && args.q_strides.column == 1 && args.dst_strides.column == 1;
}

void tile_attention(const Context& context, const TileAttentionArgs& args) {
  if (args.rows <= 0) return;
  const AttentionScratch scratch = lay_out(args);
  parallel_for(context.parallel, args.outer * args.inner, 1, [&](int64_t lo, int64_t hi) {
    char* const memory = scratch_of_thread(scratch.bytes);
    for (int64_t pair = lo; pair < hi; ++pair)
      amx::attention_unit(args, scratch, memory, pair, pair + 1 < hi);
  });
}

}  // namespace tenon::onednn::kernels
