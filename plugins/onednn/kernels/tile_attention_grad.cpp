// SPDX-License-Identifier: Apache-2.0
#include "tile_attention_grad.h"

#include "scratch.h"
#include "tile_attention.h"
#include "tile_product_args.h"

namespace tenon::onednn::kernels {
namespace {

AttentionGradScratch lay_out(const AttentionGradSizes& args) {
  AttentionGradScratch made;
  made.padded_keys = round_up(args.keys, kTilePanel);
  made.padded_depth = round_up(args.depth, kTilePanel);
  made.padded_width = round_up(args.width, kTilePanel);
  auto take = [&](int64_t elements, int64_t element_bytes) {
    const int64_t at = made.bytes;
    made.bytes += round_up(elements * element_bytes, kTileDepth);
    return at;
  };
  made.k_at = take(made.padded_keys * made.padded_depth, 2);
  made.v_at = take(made.padded_keys * made.padded_width, 2);
  made.k_columns_at = take(made.padded_keys * made.padded_depth, 2);
  made.q_at = take(kAttentionChunk * made.padded_depth, 2);
  made.dy_at = take(kAttentionChunk * made.padded_width, 2);
  made.q_sum_at = take(kAttentionChunk * made.padded_depth, 2);
  made.dy_sum_at = take(kAttentionChunk * made.padded_width, 2);
  made.weights_at = take(made.padded_keys * kAttentionChunk, 2);
  made.scores_grad_at = take(made.padded_keys * kAttentionChunk, 2);
  made.scores_at = take(made.padded_keys * kTilePanel, 4);
  made.weights_grad_at = take(made.padded_keys * kTilePanel, 4);
  made.scores_right_at = take(made.padded_keys * kTilePanel, 2);
  made.dq_at = take(kTilePanel * kTilePanel, 4);
  made.dk_at = take(made.padded_keys * made.padded_depth, 4);
  made.dv_at = take(made.padded_keys * made.padded_width, 4);
  return made;
}

}  // namespace

bool takes_tile_attention_grad(const AttentionGradSizes& args) {
  return args.rows > 0 && args.keys > 0 && args.keys <= kMostAttentionKeys && args.depth > 0 &&
         args.depth <= kMostAttentionDepth && args.width > 0 && args.width <= kMostAttentionDepth;
}

void tile_attention_grad(const Context& context, const TileAttentionGradArgs& args) {
  const AttentionGradScratch scratch = lay_out(args);
  parallel_for(context.parallel, args.outer * args.inner, 1, [&](int64_t lo, int64_t hi) {
    char* const memory = scratch_of_thread(scratch.bytes);
    for (int64_t pair = lo; pair < hi; ++pair)
      amx::attention_grad_unit(args, scratch, memory, pair, pair + 1 < hi);
  });
}

}  // namespace tenon::onednn::kernels
