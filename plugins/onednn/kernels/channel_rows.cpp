// SPDX-License-Identifier: Apache-2.0
#include "channel_rows.h"

#include <algorithm>

#include "kernel_table.h"

namespace tenon::onednn::kernels {
namespace {

// Windows from the lowest place on, each as far as it reaches.
bool plan_chunk(const int32_t* from, int64_t n, ChannelChunk* chunk) {
  std::vector<int32_t> places(from, from + n);
  std::sort(places.begin(), places.end());
  for (int32_t place : places) {
    const int32_t last = chunk->n_windows - 1;
    if (last >= 0 && place < chunk->window[last] + kChannelChunk) continue;
    if (chunk->n_windows == kChannelWindows) return false;
    chunk->window[chunk->n_windows++] = place;
  }
  for (int64_t i = 0; i < n; ++i) {
    int32_t w = chunk->n_windows - 1;
    while (chunk->window[w] > from[i])
      --w;
    const auto index = static_cast<uint8_t>(from[i] - chunk->window[w] + w % 2 * kChannelChunk);
    chunk->index[w / 2][i] = index;
    if (w >= 2) chunk->is_second |= uint64_t{1} << i;
  }
  return true;
}

}  // namespace

std::vector<ChannelChunk> plan_channel_chunks(const std::vector<int32_t>& from) {
  std::vector<ChannelChunk> chunks;
  const auto count = static_cast<int64_t>(from.size());
  for (int64_t i = 0; i < count; i += kChannelChunk) {
    ChannelChunk chunk;
    if (!plan_chunk(from.data() + i, std::min(kChannelChunk, count - i), &chunk)) return {};
    chunks.push_back(chunk);
  }
  return chunks;
}

void channel_rows(const Context& context, const ChannelRowsArgs& args) {
  int64_t bytes = 0;
  for (int i = 0; i < args.n_pieces; ++i)
    bytes += args.pieces[i].channels;
  for (int i = 0; i < args.n_results; ++i)
    bytes += args.results[i].channels;
  parallel_for(context.parallel, args.pixels, grain_rows(bytes),
               [&](int64_t lo, int64_t hi) { context.table->channel_rows(args, lo, hi); });
}

}  // namespace tenon::onednn::kernels
