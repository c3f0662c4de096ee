// SPDX-License-Identifier: Apache-2.0
#pragma once
// What only moves the channels of an 8-bit image: Concat, a shuffle (Reshape, Transpose, Reshape),
// Split and Slice, with QuantizeLinear and DequantizeLinear of one scale between them. They are one
// pass over the pixels (kernels/channel_rows.h), and nothing between them is stored.

#include <cstdint>
#include <vector>

#include "lowering/lowering.hpp"

namespace tenon::onednn {

// A value at the end of the moves, and which channels of the first it has.
struct MovedChannels {
  int value = kNone;
  bool is_real = false;  // behind DequantizeLinear: it has the scale
  std::vector<int32_t> from;
};

struct ChannelMoves {
  std::vector<int> nodes;              // in between, all absorbed
  std::vector<MovedChannels> results;  // several behind a Split or Slices
  bool is_shuffle = false;             // else the order of channels is kept
};

// From `value` on, an image of [N, C, spatial..] in quantized values that `quant` gives a meaning.
// Without results where nothing moves.
ChannelMoves find_channel_moves(const Lowering& lowering,
                                int value,
                                ElementType type,
                                const kernels::Quant& quant);

// A Concat along the channels of 8-bit images with these moves behind it, as one step; false where
// an input lies in another way or has floats.
bool lower_channel_concat(Lowering& lowering, int node);
// A shuffle alone, from its first Reshape on.
bool lower_channel_shuffle(Lowering& lowering, int node);

}  // namespace tenon::onednn
