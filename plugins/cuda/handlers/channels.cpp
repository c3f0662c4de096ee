// SPDX-License-Identifier: Apache-2.0
#include "channels.hpp"

#include <algorithm>
#include <cstddef>

#include "../kernels/channel_args.h"
#include "launch_sizes.hpp"

namespace tenon::cuda {
namespace {

constexpr uint64_t kBlocksWanted = 512;  // some for each multiprocessor
constexpr uint64_t kMostPieces = 256;

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
  args.lanes = channels.inner == 1 && channels.channels > 1 ? 32 : 1;
  uint64_t tiles = (args.channels + args.lanes - 1) / args.lanes, rows = kElementBlock / args.lanes;
  // A piece has work for each row of threads, several times over.
  uint64_t most = std::clamp<uint64_t>(args.count / (rows * 8), 1, kMostPieces);
  uint64_t wanted = std::clamp<uint64_t>((kBlocksWanted + tiles - 1) / tiles, 1, most);
  args.piece = (args.count + wanted - 1) / wanted;
  args.pieces = (args.count + args.piece - 1) / args.piece;
  ChannelSums out;
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

void add_channel_totals(Lowering& lowering,
                        const NodeInfo& node,
                        uint32_t dtype,
                        const Channels& channels,
                        const ChannelSums& sums,
                        double factor,
                        int first,
                        int second) {
  ChannelTotalArgs args{};
  args.channels = channels.channels;
  args.pieces = sums.pieces;
  args.factor = static_cast<float>(factor);
  Launch made = lowering.launch("channel_totals_" + float_suffix(dtype), args);
  made.block = 128;
  made.grid = static_cast<uint32_t>(std::min<uint64_t>((args.channels + 127) / 128, 1u << 16));
  made.patches = {{offsetof(ChannelTotalArgs, partial), sums.partial, 0},
                  {offsetof(ChannelTotalArgs, first), first, 0}};
  if (second >= 0) made.patches.push_back({offsetof(ChannelTotalArgs, second), second, 0});
  lowering.add_launch(node, std::move(made), 1, static_cast<double>(args.channels * args.pieces));
}

}  // namespace tenon::cuda
