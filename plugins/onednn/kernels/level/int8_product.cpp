// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit quantized values, widened to 16 bits; contract in ../int8_product.h. A tile is
// some rows times one panel: its sums stay in registers over all of k.

#include "epilogue.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kColumns = static_cast<int>(kInt8Panel);
constexpr int kRegisters = kColumns / kLanes;  // of a row's sums

// The sums of a tile and one row's panel stay in registers.
constexpr int kRows = (kCpuRegisters == 16 && kRegisters == 4 ? 8 : 12) / kRegisters;
constexpr int kWords = kVectorBytes / 2;

template <class To>
constexpr bool kStoresSums = false;
template <>
constexpr bool kStoresSums<int32_t> = true;

// GCC keeps the sums in registers only where all loops over them are unrolled.
template <int rows, class To>
void multiply_tile(const Int8Block& block, int64_t row, int64_t column) {
  Vi sums[rows][kRegisters];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      sums[r][v] = Vi{};
  const int64_t width = 2 * block.pairs;
  const int16_t* const a = block.rows + row * width;
  const int8_t* b = block.panels + column * width;
#pragma GCC unroll 2
  for (int64_t k = 0; k < block.pairs; ++k, b += 2 * kColumns) {
    Int16s right[kRegisters];
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      right[v] = widen_to_words(b + v * kWords);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const auto left =
          reinterpret_cast<Int16s>(splat_i(load_vector<int32_t>(a + r * width + 2 * k)));
#pragma GCC unroll 16
      for (int v = 0; v < kRegisters; ++v)
        sums[r][v] += multiply_pairs(left, right[v]);
    }
  }
  const Epilogue& epilogue = block.epilogue;
  const RowEpilogue<kRegisters> row_epilogue(epilogue);
  To* const to = static_cast<To*>(epilogue.dst.data) + row * epilogue.dst_stride + column;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kRegisters; ++v)
      sums[r][v] += block.row_shifts[row + r];
  if constexpr (kStoresSums<To>) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      row_epilogue.store(to + r * epilogue.dst_stride, sums[r], column);
  } else {
    Vf y[rows][kRegisters];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kRegisters; ++v)
        y[r][v] = to_float(sums[r][v]);
      row_epilogue.scale(y[r], column, y[r]);
    }
    if (epilogue.n_ops > 0) apply_all<kRegisters>(epilogue, {row, column, rows}, y[0]);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
      row_epilogue.store(to + r * epilogue.dst_stride, y[r], column);
  }
}

template <int rows, class To>
void multiply_rest(const Int8Block& block, int64_t row, int64_t column) {
  if constexpr (rows > 0) {
    if (block.n_rows - row == rows) return multiply_tile<rows, To>(block, row, column);
    multiply_rest<rows - 1, To>(block, row, column);
  }
}

template <class To>
void multiply(const Int8Block& block) {
  for (int64_t column = 0; column < block.epilogue.columns; column += kColumns) {
    int64_t row = 0;
    for (; row + kRows <= block.n_rows; row += kRows)
      multiply_tile<kRows, To>(block, row, column);
    multiply_rest<kRows - 1, To>(block, row, column);
  }
}

}  // namespace

void int8_block(const Int8Block& block) {
  of_sum_type(block.epilogue.dst.type, [&]<class To>() { multiply<To>(block); });
}

void widen_int8(const uint8_t* quantized, bool is_signed, int32_t zero, int64_t n, int16_t* dst) {
  const auto* const signed_values = reinterpret_cast<const int8_t*>(quantized);
  const Int16s zeros = Int16s{} + static_cast<int16_t>(zero);
  int64_t i = 0;
  for (; i + kWords <= n; i += kWords) {
    const Int16s wide =
        is_signed ? widen_to_words(signed_values + i) : widen_to_words(quantized + i);
    const Int16s centred = wide - zeros;
    std::memcpy(dst + i, &centred, sizeof centred);
  }
  for (; i < n; ++i) {
    const int32_t value = is_signed ? signed_values[i] : quantized[i];
    dst[i] = static_cast<int16_t>(value - zero);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
