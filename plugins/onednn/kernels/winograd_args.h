// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the kernels of winograd.h. Plain structs, as level/ sees them too.
//
// All products here work on words of 32 bits: one f32, or two bf16 that are summed over. kWord is
// how many elements a word has: 1 or 2.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

constexpr int64_t kWinogradPlanes = 16;  // 4x4 products for 2x2 results
constexpr int64_t kWinogradRows = 6;     // of one block of accumulators
constexpr int64_t kWinogradColumns = 64;
constexpr int64_t kWinogradUnit = 16;  // channels are multiples: all levels' lanes divide it

constexpr int64_t winograd_rows(int64_t rows) {
  return (rows + kWinogradRows - 1) / kWinogradRows * kWinogradRows;
}
constexpr int64_t winograd_columns(int64_t columns) {
  return (columns + kWinogradColumns - 1) / kWinogradColumns * kWinogradColumns;
}

struct WinogradShape {
  int64_t images = 0;
  int64_t height = 0, width = 0;          // of the source
  int64_t out_height = 0, out_width = 0;  // of the result
  int64_t pad_top = 0, pad_left = 0;
  int64_t in = 0, out = 0;  // channels, multiples of 16

  int64_t tiles_high() const { return (out_height + 1) / 2; }
  int64_t tiles_wide() const { return (out_width + 1) / 2; }
  int64_t tiles() const { return images * tiles_high() * tiles_wide(); }
};

// What a tile of an image becomes: the 4x4 source of a 2x2 result, or the 2x2 result's gradient.
enum class WinogradSide : uint8_t { kSource, kResult };

struct WinogradTransform {
  WinogradShape shape = {};
  WinogradSide side = WinogradSide::kSource;
  ElementType type = ElementType::kF32;  // of image and planes
  const void* image = nullptr;           // channels-last
  const void* zeros = nullptr;           // what lies outside of the image: a pixel of zeros
  void* planes = nullptr;                // [16][tile][channel], in words
  int64_t first = 0;                     // the tile that lies first in planes
  int64_t row = 0;                       // words from one tile, or word of tiles, to the next
  int64_t plane = 0;                     // words from one plane to the next
  bool by_tiles = false;                 // a word has neighbouring tiles, else channels
  int64_t block = kWinogradColumns;  // by_tiles: words from kWinogradColumns channels to the next

  int64_t channels() const { return side == WinogradSide::kSource ? shape.in : shape.out; }
};

// Weights in f32 -> packed [16][out / kWinogradColumns][in / kWord][kWinogradColumns][kWord].
struct WinogradPack {
  int64_t in = 0, out = 0;
  int64_t in_stride = 0, out_stride = 0, tap_stride = 0;
  bool is_flipped = false;  // taps in reverse, as the gradient of the source wants them
  ElementType type = ElementType::kF32;
  const float* weights = nullptr;
  void* packed = nullptr;
  int64_t plane = 0;  // words from one plane to the next
};

// A block of tiles [first, first + count): planes x packed weights, back to 2x2 results.
struct WinogradConvolve {
  WinogradShape shape = {};
  ElementType type = ElementType::kF32;
  const void* planes = nullptr;  // of the tiles, by channels
  int64_t row = 0, plane = 0;    // words
  const void* packed = nullptr;
  int64_t packed_plane = 0;     // words
  const float* bias = nullptr;  // null: none
  const void* add = nullptr;    // like dst, added in front of the Relu; null: none
  bool relu = false;
  void* dst = nullptr;
  float* products = nullptr;  // scratch: [16][count rounded up to rows][kWinogradColumns]
};

// c[rows, columns] (+)= the sum over depth of words: a[d * a_step + row] . b[d * b_step + column]
struct WinogradProduct {
  ElementType type = ElementType::kF32;
  const float* a = nullptr;
  int64_t a_row = 0, a_step = 0;
  const float* b = nullptr;
  int64_t b_step = 0;
  float* c = nullptr;
  int64_t c_row = 0;
  int64_t rows = 0;     // a multiple of kWinogradRows
  int64_t columns = 0;  // a multiple of 16
  int64_t depth = 0;
  bool accumulates = false;
};

// sums [16][rows of out][in] -> gradient in f32
struct WinogradFinish {
  int64_t in = 0, out = 0;
  const float* sums = nullptr;
  int64_t plane = 0;
  float* gradient = nullptr;
  int64_t in_stride = 0, out_stride = 0, tap_stride = 0;
};

}  // namespace tenon::onednn::kernels
