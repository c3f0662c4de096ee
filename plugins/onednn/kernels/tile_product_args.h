// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of products on tiles, as amx/ sees them too; contract in tile_product.h.

#include <cstdint>

#include "epilogue_args.h"
#include "windows.h"

namespace tenon::onednn::kernels {

constexpr int64_t kTileRows = 32;        // of the left operand in one block
constexpr int64_t kTilePanel = 32;       // columns of the packed right operand that lie together
constexpr int64_t kTileDepth = 64;       // bytes of k in one step
constexpr int64_t kMostTileTail = 2048;  // bytes of a row that may be no multiple of kTileDepth
// Longer rows are multiplied a piece after the other, so that a block of the left operand stays in
// L1 over all panels of a unit; the sums wait in memory meanwhile.
constexpr int64_t kTilePiece = 1024;     // bytes; rows of no more are no pieces
constexpr int64_t kTileUnitPanels = 16;  // at most, of a unit whose rows are multiplied in pieces

// The windows of a convolution over planes of few channels, without dilation. A row of the left
// operand has `steps` steps of k, each `interleaved` lines of pixels, as many as fill kTileDepth
// bytes. A pixel has kLineChannels elements of 8 bits or bf16; the right operand is zero where the
// window has no line, pixel or channel (tile_line_element).
constexpr int64_t kLineChannels = 4;
struct TileLines : Windows {
  ElementType source = ElementType::kU8;  // kU8, kS8, kBf16, or kF32 that is rounded to bf16
  int64_t channels = 0;                   // kLineChannels at most
  int64_t plane = 0;                      // elements from a channel to the next one
  int64_t image = 0;                      // and from an image to the next one
  int64_t interleaved = 1;                // 1, 2 or 4
  int64_t steps = 1;

  bool has_integers() const { return source == ElementType::kU8 || source == ElementType::kS8; }
  int64_t pixel_bytes() const { return kLineChannels * (has_integers() ? 1 : 2); }
  // Steps of k from a line of the result to the next one.
  int64_t advance() const { return stride_y / interleaved; }
  // Whether lines of the result have steps in common. Zeros of the right operand do not hide what
  // is infinite or NaN: then no step may hold a line that its window does not see.
  bool is_shared() const {
    return stride_y % interleaved == 0 && advance() < steps &&
           (has_integers() || window_height % interleaved == 0);
  }
};
constexpr int64_t kLineGroupBytes = 80 << 10;  // of the interleaved lines of a unit, at most
constexpr int64_t kMostLineSteps = 11;
// Bytes of what one line of the result sees in one step.
constexpr int64_t line_group_bytes(const TileLines& lines) {
  return lines.out_width * kTileDepth;
}

// Where a tap of the window at the first place is, in pixels of its phase.
struct TapPlace {
  int64_t phase, at;
};
constexpr TapPlace tap_place(int64_t offset, int64_t stride) {
  const int64_t phase = (offset % stride + stride) % stride;
  return {phase, (offset - phase) / stride};
}

// The windows of a convolution over channels-last images of whole steps of k, tap by tap.
struct TileTaps : Windows {
  struct Range {
    int64_t first = 0, last = 0;  // of all taps; the first one lies in front of the image or at 0
  };
  int64_t pixel_bytes = 0;  // of all channels
  Range y, x;
  bool has_common_padding = true;  // of the end of a line and the start of the next one

  int64_t count() const { return window_height * window_width; }
  // Places of a padded line, and those of them that are in the padding.
  int64_t gap() const {
    const int64_t before = -x.first;
    const int64_t behind = x.last > 0 ? x.last : 0;
    if (!has_common_padding) return before + behind;
    return before > behind ? before : behind;
  }
  int64_t line() const { return out_width + gap(); }
  bool sees_phase(int64_t py, int64_t px) const {
    return sees(py, window_height, step_y, pad_top, stride_y) &&
           sees(px, window_width, step_x, pad_left, stride_x);
  }

 private:
  static bool sees(int64_t phase, int64_t taps, int64_t step, int64_t pad, int64_t stride) {
    for (int64_t i = 0; i < taps; ++i)
      if (tap_place(i * step - pad, stride).phase == phase) return true;
    return false;
  }
};
constexpr int64_t kMostTaps = 64;
constexpr int64_t kTapBytes = 128 << 10;  // of the planes of a unit, at most
// rows: padded lines.
inline int64_t tap_plane_bytes(const TileTaps& taps, int64_t rows) {
  return (rows * taps.line() + taps.gap()) * taps.pixel_bytes;
}

// What a row of the left operand is. Where windows are outside of an image its bytes are `zero`,
// and a_stride is not read.
enum class TileRow : uint8_t {
  kElements,  // k elements, a_stride bytes after the row before
  kWindow,    // what a window of a convolution sees: `windows`, its channels and pixels in bytes
  kLines,     // the same of few channels, a plane each: `lines`; k is that of whole steps
  kTaps,      // the same of many channels: `taps`
};

struct TileProductArgs {
  ElementType type = ElementType::kU8;  // of a: kU8 and kS8 (b is s8), or kBf16 (b is bf16)
  const void* a = nullptr;
  int64_t a_stride = 0;  // bytes from one row to the next, at least those of k elements
  TileRow row = TileRow::kElements;
  ConvWindows windows = {};
  TileLines lines = {};
  TileTaps taps = {};
  uint8_t zero = 0;
  const void* b = nullptr;  // pack_tiles
  int64_t m = 0, n = 0, k = 0;
  const int32_t* shifts = nullptr;  // [tile_columns(n)]; null: zeros. Not read for bf16.
  // scales and bias: [tile_columns(n)], not read for i32; ops' operands and dst at the first row
  // and column. columns, first_row and first_column are set per block.
  Epilogue epilogue = {};
};

// Some rows times some panels of a product, on the calling thread.
struct TileUnit {
  int64_t row = 0, n_rows = 0;
  int64_t panel = 0, n_panels = 0;
  int64_t depth = 0;  // bytes of a row of the left operand, in whole steps of k
  int64_t lines = 0;  // of the result, of rows of taps; n_rows are places of padded lines then
};

namespace amx {

// Configures the thread's tiles, and releases them when it returns.
void tile_unit(const TileProductArgs& args, const TileUnit& unit);

}  // namespace amx

}  // namespace tenon::onednn::kernels
