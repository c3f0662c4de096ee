// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of products of f32 numbers on tiles, as amx/ sees them too; contract in
// bf16x6_product.h.

#include "tile_product_args.h"

namespace tenon::onednn::kernels {

constexpr int64_t kSplitParts = 3;   // of an f32 number, each in bf16
constexpr int64_t kSplitDepth = 32;  // elements of k in one step
// A step of k of one tile: its parts one behind the other.
constexpr int64_t kSplitTileBytes = kSplitParts * 16 * kTileDepth;
constexpr int64_t kSplitBlockBytes = 2 * kSplitTileBytes;  // of 32 rows, or of 32 columns
// Operands are split and multiplied a piece of k after the other, so that their parts stay in L2.
constexpr int64_t kSplitPieceSteps = 8;
constexpr int64_t kMostSplitRows = 1024;  // of a unit
constexpr int64_t kMostSplitPanels = 256;

// The right operand, in groups of columns: element [k, n] at
// data[n / columns * group + k * stride + n % columns]. Transposed, in one group: at
// data[n * stride + k].
struct SplitRight {
  const float* data = nullptr;
  int64_t columns = 0;  // of a group, a multiple of kTilePanel, or all of them
  int64_t group = 0;    // elements from a group to the next one
  int64_t stride = 0;   // and from k to the next one
  bool is_transposed = false;
  bool has_parts =
      true;  // all numbers have (have_parts). Else panels are looked at as they are split

  const float* panel(int64_t i) const {
    const int64_t column = i * kTilePanel;
    if (is_transposed) return data + column * stride;
    return data + column / columns * group + column % columns;
  }
};

// What a unit of work has at most, in blocks of 32 rows and panels of 32 columns.
struct SplitCut {
  int64_t blocks = 1;
  int64_t panels = 1;
  double efficiency = 0;  // estimated: the share of m n k products in the time of all threads
};

struct SplitProductArgs {
  const float* a = nullptr;
  int64_t a_stride = 0;          // elements between rows, or between columns:
  bool a_is_transposed = false;  // element [m, k] at a[k * a_stride + m]
  bool has_windows = false;      // rows are what windows see, and a_stride is not read
  ConvWindows windows = {};      // of images in f32; channels is a multiple of kSplitDepth
  SplitRight b = {};
  int64_t m = 0, n = 0, k = 0;
  SplitCut cut = {};  // cut_product
  // scales and bias: [columns of all groups]; ops' operands and dst at the first row and column.
  // columns, first_row and first_column are set per block.
  Epilogue epilogue = {};
};

// Some rows times some panels, on the calling thread.
struct SplitUnit {
  int64_t row = 0, n_rows = 0;
  int64_t panel = 0, n_panels = 0;
  char* memory = nullptr;  // split_unit_bytes, on a line of the cache
};

constexpr int64_t split_steps(int64_t k) {
  return (k + kSplitDepth - 1) / kSplitDepth;
}
// Even pieces: their sizes depend on k alone, and so do the bits of the sums.
constexpr int64_t split_pieces(int64_t k) {
  return (split_steps(k) + kSplitPieceSteps - 1) / kSplitPieceSteps;
}
constexpr int64_t split_piece_steps(int64_t k) {
  return (split_steps(k) + split_pieces(k) - 1) / split_pieces(k);
}
// The parts of 32 rows or columns of one piece.
constexpr int64_t split_piece_bytes(int64_t k) {
  return split_piece_steps(k) * kSplitBlockBytes;
}
constexpr int64_t split_blocks(int64_t rows) {
  return (rows + kTileRows - 1) / kTileRows;
}
// Blocks of sums in memory: those of all blocks where there are several pieces.
constexpr int64_t split_sums(int64_t k, int64_t rows, int64_t panels) {
  return split_pieces(k) == 1 ? 2 : split_blocks(rows) * panels;
}
// The parts of both operands of a unit, and sums.
constexpr int64_t split_unit_bytes(int64_t k, int64_t rows, int64_t panels) {
  return (split_blocks(rows) + panels) * split_piece_bytes(k) +
         split_sums(k, rows, panels) * kTileRows * kTilePanel * 4;
}

namespace amx {

bool have_parts(const float* numbers, int64_t n);
// Configures the thread's tiles, and releases them when it returns.
void split_unit(const SplitProductArgs& args, const SplitUnit& unit);

}  // namespace amx

}  // namespace tenon::onednn::kernels
