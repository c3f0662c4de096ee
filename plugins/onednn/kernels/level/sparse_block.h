// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows times one panel of weights that are mostly zeros; contract in ../sparse_product.h. Once for
// reals and once, with the instructions of VNNI, for codes: `Number` says how.

#include "epilogue.h"
#include "turned.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kColumns = static_cast<int>(kSparsePanel);
constexpr int kOfGroup = static_cast<int>(kSparseGroup) / kLanes;  // registers of a group of rows
constexpr int kRegisters = kColumns / kLanes;                      // of a row of one panel
#if defined(__AVX512F__)
constexpr int kMostSums = 16;  // registers that are summed up in at once
#else
constexpr int kMostSums = 8;
#endif

// What the sums of a panel are kept in until they are ended: [16 columns][rows], or [rows][16].
struct PanelSums {
  alignas(64) float at[kColumns * kMostSparseGroups * kSparseGroup];
};

// One column: each number times `registers` registers of rows. Short sums are added up in several
// chains, so that none waits for the instruction's result.
template <class Number, int registers>
TENON_INLINE void sum_column(const SparseBlock& block, int64_t column, float* to) {
  constexpr int kChains =
      registers >= kMostSums ? 1 : (kMostSums / registers > 4 ? 4 : kMostSums / registers);
  const SparseColumns& right = block.right;
  constexpr int64_t kRow = registers * kLanes;
  typename Number::Sum sums[kChains][registers] = {};
  int64_t at = right.starts[column];
  const int64_t end = right.starts[column + 1];
  for (; at + kChains <= end; at += kChains) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      const auto w = Number::splat(right.numbers, at + c);
      const int64_t row = right.steps[at + c] * kRow;
#pragma GCC unroll 16
      for (int v = 0; v < registers; ++v)
        sums[c][v] = Number::add(sums[c][v], Number::left(block.left, row + v * kLanes), w);
    }
  }
  for (; at < end; ++at) {
    const auto w = Number::splat(right.numbers, at);
    const int64_t row = right.steps[at] * kRow;
#pragma GCC unroll 16
    for (int v = 0; v < registers; ++v)
      sums[0][v] = Number::add(sums[0][v], Number::left(block.left, row + v * kLanes), w);
  }
#pragma GCC unroll 16
  for (int v = 0; v < registers; ++v) {
#pragma GCC unroll 4
    for (int c = 1; c < kChains; ++c)
      sums[0][v] += sums[c][v];
    Number::store(to + v * kLanes, sums[0][v], block, column);
  }
}

// Four columns that share their steps: what is read of the rows serves all four.
template <class Number, int registers>
TENON_INLINE void sum_four(
    const SparseBlock& block, int64_t stripe, int64_t row_registers, int first, float* to) {
  const SparseColumns& right = block.right;
  typename Number::Sum sums[4][registers] = {};
  for (int64_t at = right.starts[stripe]; at < right.starts[stripe + 1]; ++at) {
    const int64_t row = (right.steps[at] * row_registers + first) * kLanes;
    typename Number::Left left[registers];
#pragma GCC unroll 4
    for (int v = 0; v < registers; ++v)
      left[v] = Number::left(block.left, row + v * kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const auto w = Number::splat(right.numbers, at * 4 + i);
#pragma GCC unroll 4
      for (int v = 0; v < registers; ++v)
        sums[i][v] = Number::add(sums[i][v], left[v], w);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < registers; ++v)
      Number::store(to + (i * row_registers + first + v) * kLanes, sums[i][v], block,
                    stripe * 4 + i);
}

// Sixteen columns that share their steps, which lie side by side in registers: `rows` rows.
template <class Number, int rows>
TENON_INLINE void sum_sixteen(const SparseBlock& block, int64_t first, float* to) {
  const SparseColumns& right = block.right;
  constexpr int kChains = rows * kRegisters >= 8 ? 1 : (rows * kRegisters > 2 ? 2 : 4);
  const int64_t all_rows = block.n_groups * kSparseGroup;
  typename Number::Sum sums[kChains][rows][kRegisters] = {};
  int64_t at = right.starts[block.panel];
  const int64_t end = right.starts[block.panel + 1];
  while (at < end) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      if (c > 0 && at + c >= end) break;
      const int64_t row = right.steps[at + c] * all_rows + first;
#pragma GCC unroll 4
      for (int v = 0; v < kRegisters; ++v) {
        const auto w = Number::right(right.numbers, ((at + c) * kRegisters + v) * kLanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r)
          sums[c][r][v] = Number::add_splat(sums[c][r][v], block.left, row + r, w);
      }
    }
    at += kChains;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kRegisters; ++v) {
#pragma GCC unroll 4
      for (int c = 1; c < kChains; ++c)
        sums[0][r][v] += sums[c][r][v];
      Number::store_row(to + (r * kRegisters + v) * kLanes, sums[0][r][v], block, v * kLanes);
    }
  }
}

template <class To>
void store_rows(const Epilogue& epilogue, int64_t first, int rows, const Vf* y) {
  const Finish<kRegisters> finish(epilogue);
  for (int r = 0; r < rows; ++r)
    finish(static_cast<To*>(epilogue.dst.data) + (first + r) * epilogue.dst_stride,
           y + r * kRegisters, 0);
}

void end_rows(const Epilogue& epilogue, int64_t first, int rows, Vf* y) {
  const Finish<kRegisters> finish(epilogue);
  for (int r = 0; r < rows; ++r)
    finish.scale(y + r * kRegisters, 0, y + r * kRegisters);
  for (int i = 0; i < epilogue.n_ops; ++i)
    apply<kRegisters>(epilogue, epilogue.ops[i], {first, 0, rows}, y);
  switch (epilogue.dst.type) {
    case ElementType::kU8:
      return store_rows<uint8_t>(epilogue, first, rows, y);
    case ElementType::kS8:
      return store_rows<int8_t>(epilogue, first, rows, y);
    case ElementType::kBf16:
      return store_rows<Bf16>(epilogue, first, rows, y);
    default:
      return store_rows<float>(epilogue, first, rows, y);
  }
}

// Sums of columns [16][rows] become rows of 16.
void end_columns(const SparseBlock& block, const float* sums) {
  const int64_t stride = block.n_groups * kSparseGroup;
  for (int64_t first = 0; first < block.n_rows; first += kLanes) {
    Vf y[kLanes * kRegisters];
#pragma GCC unroll 4
    for (int v = 0; v < kRegisters; ++v) {
      Vf lanes[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        lanes[i] = load(sums + (v * kLanes + i) * stride + first);
      turn(lanes);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        y[i * kRegisters + v] = lanes[i];
    }
    const int64_t left = block.n_rows - first;
    end_rows(block.epilogue, first, static_cast<int>(left < kLanes ? left : kLanes), y);
  }
}

template <class Number, int groups>
void multiply_ones(const SparseBlock& block, float* to) {
  for (int64_t column = 0; column < kColumns; ++column)
    sum_column<Number, groups * kOfGroup>(block, block.panel * kColumns + column,
                                          to + column * groups * kSparseGroup);
}

template <class Number>
void multiply_fours(const SparseBlock& block, float* to) {
  constexpr int kAtOnce = kMostSums / 4;
  const int64_t row_registers = block.n_groups * kOfGroup;
  for (int64_t i = 0; i < kColumns / 4; ++i) {
    const int64_t stripe = block.panel * (kColumns / 4) + i;
    float* const four = to + i * 4 * row_registers * kLanes;
    int first = 0;
    for (; first + kAtOnce <= row_registers; first += kAtOnce)
      sum_four<Number, kAtOnce>(block, stripe, row_registers, first, four);
    for (; first < row_registers; ++first)
      sum_four<Number, 1>(block, stripe, row_registers, first, four);
  }
}

template <class Number, int rows>
void multiply_sixteens(const SparseBlock& block, int64_t* first, float* to) {
  for (; *first + rows <= block.n_rows; *first += rows)
    sum_sixteen<Number, rows>(block, *first, to + *first * kColumns);
}

template <class Number>
void multiply_block(const SparseBlock& block) {
  PanelSums sums;
  if (block.right.width == kSparsePanel) {
    int64_t first = 0;
    multiply_sixteens<Number, kMostSums / kRegisters>(block, &first, sums.at);
    multiply_sixteens<Number, 4>(block, &first, sums.at);
    multiply_sixteens<Number, 1>(block, &first, sums.at);
    for (int64_t row = 0; row < block.n_rows; row += kLanes) {
      const int64_t left = block.n_rows - row;
      Vf y[kLanes * kRegisters];
      const int rows = static_cast<int>(left < kLanes ? left : kLanes);
      for (int i = 0; i < rows * kRegisters; ++i)
        y[i] = load(sums.at + row * kColumns + i * kLanes);
      end_rows(block.epilogue, row, rows, y);
    }
    return;
  }
  if (block.right.width == 4)
    multiply_fours<Number>(block, sums.at);
  else if (block.n_groups == 1)
    multiply_ones<Number, 1>(block, sums.at);
  else if (block.n_groups == 2)
    multiply_ones<Number, 2>(block, sums.at);
  else if (block.n_groups == 3)
    multiply_ones<Number, 3>(block, sums.at);
  else
    multiply_ones<Number, 4>(block, sums.at);
  end_columns(block, sums.at);
}

}  // namespace

}  // namespace tenon::onednn::kernels::TENON_LEVEL
