// SPDX-License-Identifier: Apache-2.0
#include "channels.hpp"

#include <algorithm>
#include <cstddef>

#include "../kernels/channel_args.h"
#include "launch_sizes.hpp"

namespace tenon::cuda {
namespace {

constexpr uint64_t kBlocksWanted = 1024;  // several for each multiprocessor
constexpr uint64_t kMostPieces = 512;

// Along the channels: vectors where they fill 16 bytes, and as many threads as divide them.
void share_channels(ChannelSumArgs* args, uint32_t dtype) {
  uint64_t vector = 16 / bytes_of(dtype, 1);
  bool in_vectors = args->inner == 1 && args->channels % vector == 0;
  args->width = in_vectors ? static_cast<unsigned>(vector) : 1;
  uint64_t vectors = args->inner == 1 ? args->channels / args->width : 1;
  uint64_t lanes = 1;
  while (lanes < 32 && (vectors % (2 * lanes) == 0 || (lanes < 8 && 2 * lanes <= vectors)))
    lanes *= 2;
  args->lanes = static_cast<unsigned>(lanes);
}

}  // namespace

ChannelSums add_channel_sums(Lowering& lowering,
                             const NodeInfo& node,
                             const char* kind,
                             uint32_t dtype,
                             const Channels& channels,
                             const ChannelReads& reads) {
  ChannelSumArgs args{};
  args.channels = channels.channels;
  args.inner = channels.inner;
  args.count = channels.count;
  share_channels(&args, dtype);
  uint64_t width = uint64_t{args.lanes} * args.width, rows = kElementBlock / args.lanes;
  uint64_t tiles = (args.channels + width - 1) / width;
  // A piece has work for each row of threads, several times over.
  uint64_t most = std::clamp<uint64_t>(args.count / (rows * 8), 1, kMostPieces);
  uint64_t wanted = std::clamp<uint64_t>((kBlocksWanted + tiles - 1) / tiles, 1, most);
  args.piece = (args.count + wanted - 1) / wanted;
  args.pieces = (args.count + args.piece - 1) / args.piece;
  ChannelSums out;
  out.channels = args.channels;
  out.pieces = args.pieces;
  out.partial = lowering.scratch(cat(node.name, " pieces of ", kind),
                                 2 * args.pieces * args.channels * sizeof(float));
  Launch made = lowering.launch(cat("channel_", kind, "_", float_suffix(dtype)), args);
  made.block = kElementBlock;
  made.grid = static_cast<uint32_t>(std::min<uint64_t>(tiles * args.pieces, 1u << 16));
  auto point = [&](size_t at, int buffer) {
    if (buffer >= 0) made.patches.push_back({static_cast<uint32_t>(at), buffer, 0});
  };
  point(offsetof(ChannelSumArgs, x), reads.x);
  point(offsetof(ChannelSumArgs, dy), reads.dy);
  point(offsetof(ChannelSumArgs, mean), reads.mean);
  point(offsetof(ChannelSumArgs, inv_std), reads.inv_std);
  size_t n_reads = made.patches.size();
  point(offsetof(ChannelSumArgs, partial), out.partial);
  lowering.add_launch(node, std::move(made), n_reads,
                      2 * static_cast<double>(args.count * args.channels));
  return out;
}

void share_totals(Launch* launch, uint64_t channels) {
  launch->block = 1024;
  launch->grid = static_cast<uint32_t>(std::min<uint64_t>((channels + 31) / 32, 1u << 16));
}

void add_channel_totals(Lowering& lowering,
                        const NodeInfo& node,
                        uint32_t dtype,
                        const ChannelSums& sums,
                        int inv_std,
                        int first,
                        int second,
                        double factor) {
  ChannelTotalArgs args{};
  args.channels = sums.channels;
  args.pieces = sums.pieces;
  args.factor = static_cast<float>(factor);
  Launch made = lowering.launch("channel_totals_" + float_suffix(dtype), args);
  share_totals(&made, args.channels);
  made.patches = {{offsetof(ChannelTotalArgs, partial), sums.partial, 0}};
  if (inv_std >= 0) made.patches.push_back({offsetof(ChannelTotalArgs, inv_std), inv_std, 0});
  size_t n_reads = made.patches.size();
  made.patches.push_back({offsetof(ChannelTotalArgs, first), first, 0});
  if (second >= 0) made.patches.push_back({offsetof(ChannelTotalArgs, second), second, 0});
  lowering.add_launch(node, std::move(made), n_reads,
                      static_cast<double>(args.channels * args.pieces));
}

}  // namespace tenon::cuda
