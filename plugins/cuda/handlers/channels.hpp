// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums over everything but one axis, which several handlers need.

#include "handlers.hpp"

namespace tenon::cuda {

// Element j of channel c lies at (j / inner * channels + c) * inner + j % inner.
struct Channels {
  uint64_t channels = 1, inner = 1, count = 0;  // count: elements of a channel
};

// One sum or two, in pieces. Steps that follow read `partial`.
struct ChannelSums {
  int partial = -1;
  uint64_t channels = 1, pieces = 1;
};
// kind: "values", "distances", "gradients" or "row_gradients"; reads: buffers of the kernel's x,
// dy, mean and inv_std, -1 for what it does not read.
struct ChannelReads {
  int x = -1, dy = -1, mean = -1, inv_std = -1;
};
ChannelSums add_channel_sums(Lowering& lowering,
                             const NodeInfo& node,
                             const char* kind,
                             uint32_t dtype,
                             const Channels& channels,
                             const ChannelReads& reads);
// Blocks and threads of a kernel that adds pieces up.
void share_totals(Launch* launch, uint64_t channels);
// first and second (-1: none): buffers of `dtype`, one element per channel; inv_std (-1: none): by
// what the second is multiplied.
void add_channel_totals(Lowering& lowering,
                        const NodeInfo& node,
                        uint32_t dtype,
                        const ChannelSums& sums,
                        int inv_std,
                        int first,
                        int second = -1,
                        double factor = 1);

}  // namespace tenon::cuda
