// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the passes over channels of 8-bit pixels, as level/ sees them too; contract in
// channel_rows.h.

#include <cstdint>

namespace tenon::onednn::kernels {

constexpr int64_t kChannelChunk = 64;       // bytes of a register
constexpr int64_t kMostChannels = 4096;     // of one pixel, all pieces together
constexpr int64_t kMostChannelPieces = 16;  // and results
constexpr int64_t kChannelWindows = 4;      // registers that one of a result's may gather from

// Up to 64 bytes of a result's pixel: byte i is index[i] of the 64 bytes that start at
// window[choice[i]] of the joined pixel.
struct ChannelChunk {
  int32_t window[kChannelWindows] = {};
  int32_t n_windows = 0;
  uint8_t index[2][kChannelChunk] = {};  // bits 0 to 5; bit 6 is set for windows 1 and 3
  uint64_t is_second = 0;                // bytes of windows 2 and 3
};

// One source of the joined pixel: `channels` bytes of every `stride`.
struct ChannelPiece {
  const uint8_t* src = nullptr;
  int64_t stride = 0;
  int64_t channels = 0;
  const uint8_t* table = nullptr;  // [256] new bytes for old ones; null: they stay
};

struct ChannelResult {
  uint8_t* dst = nullptr;  // [pixels, channels]
  int64_t channels = 0;
  const int32_t* from = nullptr;         // [channels]: places in the joined pixel
  const ChannelChunk* chunks = nullptr;  // for each 64 of them; null where one has more windows
};

struct ChannelRowsArgs {
  int64_t pixels = 0;
  int n_pieces = 0;
  int n_results = 0;
  ChannelPiece pieces[kMostChannelPieces] = {};
  ChannelResult results[kMostChannelPieces] = {};
};

}  // namespace tenon::onednn::kernels
