// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows times some panels of weights that are mostly zeros; contract in ../sparse_product.h. Once
// for reals and once, with the instructions of VNNI, for quantized values: `Number` says how.

#include "epilogue.h"
#include "transpose.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kColumns = static_cast<int>(kSparsePanel);
constexpr int kOfGroup = static_cast<int>(kSparseGroup) / kLanes;  // registers of a group of rows
constexpr int kRegisters = kColumns / kLanes;                      // of a row of one panel
constexpr int kMostSums = kCpuRegisters / 2;  // registers that are summed up in at once

// What sums are kept in from one span of steps to the next, and until their epilogue: of each panel
// [16 columns][rows], or [rows][16].
constexpr int64_t kPanelSums = kColumns * kMostSparseGroups * kSparseGroup;
struct Sums {
  alignas(64) float at[kMostSparsePanels * kPanelSums];
};

// One span of steps.
struct Span {
  const SparseBlock& block;
  int64_t number;
  const uint32_t* start(int64_t stripe) const {
    return block.right.starts + number * block.right.stripes + stripe;
  }
};

template <class Sum>
TENON_INLINE Sum begun(const float* from, const Span& span) {
  return span.number == 0 ? Sum{} : load_vector<Sum>(from);
}
template <class Sum>
TENON_INLINE void keep(float* to, Sum sum) {
  std::memcpy(to, &sum, sizeof sum);
}

// One column: each number times `registers` registers of rows. Short sums are added up in several
// chains, so that none waits for the instruction's result.
template <class Number, int registers>
TENON_INLINE void sum_column(const Span& span, int64_t column, float* to) {
  using Sum = typename Number::Sum;
  constexpr int kMostChains = kMostSums / 2 / registers;
  constexpr int kChains = kMostChains < 1 ? 1 : (kMostChains > 4 ? 4 : kMostChains);
  constexpr int64_t kRow = registers * kLanes;
  const SparseColumns& right = span.block.right;
  const void* const left = span.block.left;
  Sum sums[kChains][registers] = {};
#pragma GCC unroll 16
  for (int v = 0; v < registers; ++v)
    sums[0][v] = begun<Sum>(to + v * kLanes, span);
  int64_t at = *span.start(column);
  const int64_t end = *span.start(column + 1);
  for (; at + kChains <= end; at += kChains) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      const auto w = Number::splat(right.numbers, at + c);
      const int64_t row = right.steps[at + c] * kRow;
#pragma GCC unroll 16
      for (int v = 0; v < registers; ++v)
        sums[c][v] = Number::add(sums[c][v], Number::lanes(left, row + v * kLanes), w);
    }
  }
  for (; at < end; ++at) {
    const auto w = Number::splat(right.numbers, at);
    const int64_t row = right.steps[at] * kRow;
#pragma GCC unroll 16
    for (int v = 0; v < registers; ++v)
      sums[0][v] = Number::add(sums[0][v], Number::lanes(left, row + v * kLanes), w);
  }
#pragma GCC unroll 16
  for (int v = 0; v < registers; ++v) {
#pragma GCC unroll 4
    for (int c = 1; c < kChains; ++c)
      sums[0][v] += sums[c][v];
    keep(to + v * kLanes, sums[0][v]);
  }
}

// Four columns that share their steps: what is read of the rows serves all four. to: [4][rows]
template <class Number, int registers>
TENON_INLINE void sum_four(
    const Span& span, int64_t stripe, int64_t row_registers, int64_t first, float* to) {
  using Sum = typename Number::Sum;
  const SparseColumns& right = span.block.right;
  Sum sums[4][registers];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < registers; ++v)
      sums[i][v] = begun<Sum>(to + (i * row_registers + first + v) * kLanes, span);
  const int64_t end = *span.start(stripe + 1);
  for (int64_t at = *span.start(stripe); at < end; ++at) {
    const int64_t row = (right.steps[at] * row_registers + first) * kLanes;
    Sum left[registers];
#pragma GCC unroll 4
    for (int v = 0; v < registers; ++v)
      left[v] = Number::lanes(span.block.left, row + v * kLanes);
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
      keep(to + (i * row_registers + first + v) * kLanes, sums[i][v]);
}

// Sixteen columns that share their steps, which lie side by side in registers: `rows` rows.
template <class Number, int rows>
TENON_INLINE void sum_sixteen(const Span& span, int64_t panel, int64_t first, float* to) {
  using Sum = typename Number::Sum;
  const SparseColumns& right = span.block.right;
  constexpr int kChains = rows * kRegisters >= 8 ? 1 : (rows * kRegisters > 2 ? 2 : 4);
  const int64_t all_rows = span.block.n_groups * kSparseGroup;
  Sum sums[kChains][rows][kRegisters] = {};
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kRegisters; ++v)
      sums[0][r][v] = begun<Sum>(to + (r * kRegisters + v) * kLanes, span);
  int64_t at = *span.start(panel);
  const int64_t end = *span.start(panel + 1);
  while (at < end) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) {
      if (c > 0 && at + c >= end) break;
      const int64_t row = right.steps[at + c] * all_rows + first;
#pragma GCC unroll 4
      for (int v = 0; v < kRegisters; ++v) {
        const auto w = Number::lanes(right.numbers, ((at + c) * kRegisters + v) * kLanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r)
          sums[c][r][v] = Number::add(sums[c][r][v], Number::splat(span.block.left, row + r), w);
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
      keep(to + (r * kRegisters + v) * kLanes, sums[0][r][v]);
    }
  }
}

// y: [rows][16], sums
void apply_epilogue(const Epilogue& epilogue, const TileOf& tile, Vf* y) {
  const RowEpilogue<kRegisters> row_epilogue(epilogue);
  for (int r = 0; r < tile.rows; ++r)
    row_epilogue.scale(y + r * kRegisters, tile.column, y + r * kRegisters);
  for (int i = 0; i < epilogue.n_ops; ++i)
    apply<kRegisters>(epilogue, epilogue.ops[i], tile, y);
  of_float_type(epilogue.dst.type,
                [&]<class To>() { store_tile<kRegisters, To>(epilogue, tile, y); });
}

// Of one panel: sums of columns [16][rows] become rows of 16.
template <class Number>
void end_columns(const SparseBlock& block, int64_t panel, const float* sums) {
  const int64_t stride = block.n_groups * kSparseGroup;
  for (int64_t first = 0; first < block.n_rows; first += kLanes) {
    Vf y[kLanes * kRegisters];
#pragma GCC unroll 4
    for (int v = 0; v < kRegisters; ++v) {
      Vf lanes[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        lanes[i] = load(sums + (v * kLanes + i) * stride + first);
      transpose(lanes);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        y[i * kRegisters + v] =
            Number::real(lanes[i], block, (block.panel + panel) * kColumns + v * kLanes);
    }
    const int64_t left = block.n_rows - first;
    apply_epilogue(block.epilogue,
                   {first, panel * kColumns, static_cast<int>(left < kLanes ? left : kLanes)}, y);
  }
}
// The same of sums that are rows of 16 already.
template <class Number>
void end_sixteens(const SparseBlock& block, int64_t panel, const float* sums) {
  for (int64_t row = 0; row < block.n_rows; row += kLanes) {
    const int64_t left = block.n_rows - row;
    const int rows = static_cast<int>(left < kLanes ? left : kLanes);
    Vf y[kLanes * kRegisters];
    for (int i = 0; i < rows * kRegisters; ++i)
      y[i] = Number::real(load(sums + row * kColumns + i * kLanes), block,
                          (block.panel + panel) * kColumns + i % kRegisters * kLanes);
    apply_epilogue(block.epilogue, {row, panel * kColumns, rows}, y);
  }
}

template <class Number, int groups>
void multiply_ones(const Span& span, int64_t panel, float* to) {
  for (int64_t column = 0; column < kColumns; ++column)
    sum_column<Number, groups * kOfGroup>(span, panel * kColumns + column,
                                          to + column * groups * kSparseGroup);
}

template <class Number>
void multiply_fours(const Span& span, int64_t panel, float* to) {
  constexpr int kAtOnce = kMostSums / 4;
  const int64_t row_registers = span.block.n_groups * kOfGroup;
  for (int64_t i = 0; i < kColumns / 4; ++i) {
    const int64_t stripe = panel * (kColumns / 4) + i;
    float* const four = to + i * 4 * row_registers * kLanes;
    int64_t first = 0;
    for (; first + kAtOnce <= row_registers; first += kAtOnce)
      sum_four<Number, kAtOnce>(span, stripe, row_registers, first, four);
    for (; first < row_registers; ++first)
      sum_four<Number, 1>(span, stripe, row_registers, first, four);
  }
}

template <class Number, int rows>
void multiply_rows(const Span& span, int64_t panel, int64_t* first, float* to) {
  for (; *first + rows <= span.block.n_rows; *first += rows)
    sum_sixteen<Number, rows>(span, panel, *first, to + *first * kColumns);
}
template <class Number>
void multiply_sixteens(const Span& span, int64_t panel, float* to) {
  int64_t first = 0;
  multiply_rows<Number, kMostSums / kRegisters>(span, panel, &first, to);
  multiply_rows<Number, 4>(span, panel, &first, to);
  multiply_rows<Number, 1>(span, panel, &first, to);
}

template <class Number>
auto multiply_of(const SparseBlock& block) {
  if (block.right.width == kSparsePanel) return multiply_sixteens<Number>;
  if (block.right.width == 4) return multiply_fours<Number>;
  constexpr decltype(&multiply_fours<Number>) kOnes[] = {
      multiply_ones<Number, 1>, multiply_ones<Number, 2>, multiply_ones<Number, 3>,
      multiply_ones<Number, 4>};
  static_assert(kMostSparseGroups == 4);
  return kOnes[block.n_groups - 1];
}

template <class Number>
void multiply_block(const SparseBlock& block) {
  Sums sums;
  const auto multiply = multiply_of<Number>(block);
  // Sums of no products begin too.
  for (int64_t span = 0; span < block.right.spans; ++span)
    for (int64_t panel = 0; panel < block.n_panels; ++panel)
      multiply({block, span}, block.panel + panel, sums.at + panel * kPanelSums);
  if (block.right.spans == 0) std::memset(sums.at, 0, sizeof sums.at);
  for (int64_t panel = 0; panel < block.n_panels; ++panel) {
    const float* const of_panel = sums.at + panel * kPanelSums;
    if (block.right.width == kSparsePanel)
      end_sixteens<Number>(block, panel, of_panel);
    else
      end_columns<Number>(block, panel, of_panel);
  }
}

}  // namespace

}  // namespace tenon::onednn::kernels::TENON_LEVEL
