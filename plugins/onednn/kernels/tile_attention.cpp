// SPDX-License-Identifier: Apache-2.0
#include "tile_attention.h"

#include <algorithm>
#include <memory>
#include <new>

#include "tile_product_args.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

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

// Grows to what the largest attention of this thread needs, and is kept until the thread ends.
char* scratch_of_thread(int64_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(char* memory) const { ::operator delete(memory, kAlignment); }
  };
  thread_local std::unique_ptr<char, Free> memory;
  thread_local int64_t size = 0;
  if (size < bytes) {
    memory.reset();
    size = 0;
    memory.reset(static_cast<char*>(::operator new(static_cast<size_t>(bytes), kAlignment)));
    size = bytes;
  }
  return memory.get();
}

}  // namespace

bool takes_tile_attention(const TileAttentionArgs& args) {
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
