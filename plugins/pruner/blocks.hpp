// SPDX-License-Identifier: Apache-2.0
#pragma once
// Zeros in blocks: weights that stand for a few channels made from a few that are read go or stay
// together. Kernels for sparse weights read an index once for a block. Plain numbers, no graph.

#include "masks.hpp"

namespace tenon::pruner {

struct BlockShape {
  int64_t makes = 1;  // channels that the weights make
  int64_t reads = 1;  // that they read

  bool is_single() const { return makes == 1 && reads == 1; }
};

// Which block each element of a weight of `shape` lies in, from 0 on. Where the axes are no
// multiples of a block, the last ones are smaller. Axes beside these two (a kernel's pixels) are in
// blocks of one.
std::vector<uint32_t> block_ids(const std::vector<int64_t>& shape,
                                size_t makes,
                                size_t reads,
                                const BlockShape& block);

// Blocks of the lowest mean score go, as many as `gone` elements hold whole; an element with a
// score of minus infinity goes in any case, and counts as 0 in its block's mean.
Mask drop_lowest_blocks(const std::vector<double>& scores,
                        const std::vector<uint32_t>& ids,
                        uint64_t gone);

}  // namespace tenon::pruner
