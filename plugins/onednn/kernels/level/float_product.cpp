// SPDX-License-Identifier: Apache-2.0
// Products of f32 numbers; contract in ../float_product.h. A tile is some rows times a panel:
// its sums stay in registers over all of k.

#include "epilogue.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kColumns = kCpuRegisters == 32 && kLanes == 16 ? 64 : 16;  // of a panel
constexpr int kRegisters = kColumns / kLanes;                            // of a row's sums
// The sums of a tile, one row's columns and a number of the left operand stay in registers.
constexpr int kRows = (kCpuRegisters == 32 ? 24 : kRegisters == 4 ? 8 : 12) / kRegisters;

// Of few rows, panels come from memory once. The hardware's own prefetching keeps up with one row,
// but not with several: 768 x 2304 by 4 rows run at 21 GB/s without this and at 26 to 28 with it.
// What is already near costs nothing: a tile waits for its arithmetic.
constexpr int kAhead = 256;  // elements
constexpr int kLine = 16;

void prefetch_ahead(const float* panel) {
#pragma GCC unroll 4
  for (int column = 0; column < kColumns; column += kLine)
    __builtin_prefetch(panel + kAhead + column);
}

// Nothing but a scale and a bias, in f32.
bool is_plain(const Epilogue& epilogue) {
  return epilogue.dst.type == ElementType::kF32 && epilogue.n_ops == 0 &&
         epilogue.low == -__builtin_inff() && epilogue.high == __builtin_inff();
}

// sums: [tile.rows][kRegisters]
[[gnu::noinline]] void apply_epilogue(const Epilogue& epilogue, const TileOf& tile, Vf* sums) {
  const RowEpilogue<kRegisters> row_epilogue(epilogue);
  for (int r = 0; r < tile.rows; ++r)
    row_epilogue.scale(sums + r * kRegisters, tile.column, sums + r * kRegisters);
  if (epilogue.n_ops > 0) apply_all<kRegisters>(epilogue, tile, sums);
  of_float_type(epilogue.dst.type,
                [&]<class To>() { store_tile<kRegisters, To>(epilogue, tile, sums); });
}

// The first `wide` registers of each row's columns; the others are not there. GCC keeps the sums in
// registers only where all loops over them are unrolled.
template <int rows, int wide>
void multiply_tile(const FloatBlock& block, int64_t row) {
  Vf sums[rows][kRegisters];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      sums[r][v] = Vf{};
  const float* const a = block.rows + row * block.row_stride;
  const float* b = block.panel;
#pragma GCC unroll 2
  for (int64_t k = 0; k < block.depth; ++k, b += kColumns) {
    Vf right[wide];
#pragma GCC unroll 16
    for (int v = 0; v < wide; ++v)
      right[v] = load(b + v * kLanes);
    if constexpr (rows > 1) prefetch_ahead(b);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const Vf left = splat(a[r * block.row_stride + k]);
#pragma GCC unroll 16
      for (int v = 0; v < wide; ++v)
        sums[r][v] = fma(left, right[v], sums[r][v]);
    }
  }
  const Epilogue& epilogue = block.epilogue;
  if (epilogue.columns < kColumns || !is_plain(epilogue))
    return apply_epilogue(epilogue, {row, 0, rows}, sums[0]);
  float* const to = static_cast<float*>(epilogue.dst.data) + row * epilogue.dst_stride;
#pragma GCC unroll 16
  for (int v = 0; v < kRegisters; ++v) {
    const Vf scale = load(epilogue.scales + v * kLanes);
    const Vf bias = load(epilogue.bias + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      store(to + r * epilogue.dst_stride + v * kLanes, fma(sums[r][v], scale, bias));
  }
}

template <int rows, int wide>
void multiply_rows(const FloatBlock& block, int64_t row, int64_t n) {
  if constexpr (rows > 0) {
    if (n == rows) return multiply_tile<rows, wide>(block, row);
    multiply_rows<rows - 1, wide>(block, row, n);
  }
}

template <int wide>
void multiply(const FloatBlock& block) {
  if constexpr (wide > 1)
    if (block.epilogue.columns <= (wide - 1) * kLanes) return multiply<wide - 1>(block);
  for (int64_t row = 0; row < block.n_rows;) {
    const int64_t left = block.n_rows - row;
    // Two tiles of about one size at the end: few rows at once wait for their own sums.
    const bool is_even_end = left > kRows && left < 2 * kRows;
    const int64_t rows = is_even_end ? (left + 1) / 2 : (left < kRows ? left : kRows);
    multiply_rows<kRows, wide>(block, row, rows);
    row += rows;
  }
}

}  // namespace

void float_block(const FloatBlock& block) {
  multiply<kRegisters>(block);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
