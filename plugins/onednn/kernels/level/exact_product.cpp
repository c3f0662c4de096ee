// SPDX-License-Identifier: Apache-2.0
// Products in f64 and in integers; contract in ../exact_product.h. A tile is some rows times a
// panel of two registers, whose sums stay in registers over a piece of k.

#include "level.h"
#include "simd.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kWide = 2;                                        // registers of a panel
constexpr int kRows = (kCpuRegisters == 32 ? 24 : 12) / kWide;  // of a tile

// Integers as unsigned ones, whose products wrap.
template <class T>
struct Register {
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kColumns = kLanes * kWide;
  using V = typename VectorOf<T, kLanes>::Type;

  static V fused(V a, V b, V c) {
    if constexpr (sizeof(T) == 8 && T(0.5) != T(0))
      return fma(a, b, c);
    else
      return a * b + c;
  }
};

template <class T>
void pack(const T* b, int64_t b_k, int64_t b_column, int64_t depth, int64_t columns, T* panel) {
  constexpr int kColumns = Register<T>::kColumns;
  for (int64_t k = 0; k < depth; ++k, panel += kColumns, b += b_k) {
    if (b_column == 1 && columns == kColumns) {
      std::memcpy(panel, b, kColumns * sizeof(T));
      continue;
    }
    for (int64_t column = 0; column < kColumns; ++column)
      panel[column] = column < columns ? b[column * b_column] : T(0);
  }
}

template <class T>
struct Tile {
  const T* a;
  int64_t a_row, a_k;
  const T* panel;
  int64_t depth;
  T* dst;
  int64_t dst_row;
  bool adds;  // to what dst holds
};

template <class T, int rows>
void multiply_tile(const Tile<T>& tile) {
  using R = Register<T>;
  using V = typename R::V;
  V sums[rows][kWide];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v)
      sums[r][v] = tile.adds ? load_vector<V>(tile.dst + r * tile.dst_row + v * R::kLanes) : V{};
  const T* a = tile.a;
  const T* b = tile.panel;
#pragma GCC unroll 2
  for (int64_t k = 0; k < tile.depth; ++k, a += tile.a_k, b += R::kColumns) {
    V right[kWide];
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v)
      right[v] = load_vector<V>(b + v * R::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const V left = a[r * tile.a_row] - V{};
#pragma GCC unroll 16
      for (int v = 0; v < kWide; ++v)
        sums[r][v] = R::fused(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v)
      std::memcpy(tile.dst + r * tile.dst_row + v * R::kLanes, &sums[r][v], sizeof(V));
}

template <class T, int rows>
void multiply_rows(const Tile<T>& tile, int64_t n) {
  if constexpr (rows > 0) {
    if (n == rows) return multiply_tile<T, rows>(tile);
    multiply_rows<T, rows - 1>(tile, n);
  }
}

// Where there are fewer columns than a panel has, by way of whole ones.
template <class T>
void multiply_narrow(Tile<T> tile, int64_t n, int64_t columns) {
  constexpr int kColumns = Register<T>::kColumns;
  alignas(kVectorBytes) T whole[kRows * kColumns] = {};
  for (int64_t r = 0; tile.adds && r < n; ++r)
    std::memcpy(whole + r * kColumns, tile.dst + r * tile.dst_row,
                static_cast<size_t>(columns) * sizeof(T));
  T* const dst = tile.dst;
  const int64_t dst_row = tile.dst_row;
  tile.dst = whole;
  tile.dst_row = kColumns;
  multiply_rows<T, kRows>(tile, n);
  for (int64_t r = 0; r < n; ++r)
    std::memcpy(dst + r * dst_row, whole + r * kColumns, static_cast<size_t>(columns) * sizeof(T));
}

template <class T>
void multiply(const ExactBlock& block) {
  constexpr int kColumns = Register<T>::kColumns;
  const T* const a = static_cast<const T*>(block.a);
  const T* const b = static_cast<const T*>(block.b);
  T* const panel = static_cast<T*>(block.room);
  for (int64_t column = 0; column < block.columns; column += kColumns) {
    const int64_t left = block.columns - column;
    const int64_t columns = left < kColumns ? left : kColumns;
    int64_t k = 0;
    do {  // once where nothing is to be summed
      const int64_t rest = block.depth - k;
      const int64_t depth = rest < kExactDepth ? rest : kExactDepth;
      pack(b + k * block.b_k + column * block.b_column, block.b_k, block.b_column, depth, columns,
           panel);
      for (int64_t row = 0; row < block.rows; row += kRows) {
        const int64_t n = block.rows - row < kRows ? block.rows - row : kRows;
        const Tile<T> tile = {a + row * block.a_row + k * block.a_k,
                              block.a_row,
                              block.a_k,
                              panel,
                              depth,
                              static_cast<T*>(block.dst) + row * block.dst_row + column,
                              block.dst_row,
                              k > 0};
        if (columns == kColumns)
          multiply_rows<T, kRows>(tile, n);
        else
          multiply_narrow(tile, n, columns);
      }
      k += kExactDepth;
    } while (k < block.depth);
  }
}

}  // namespace

void exact_block(const ExactBlock& block) {
  switch (block.type) {
    case ElementType::kI32:
      return multiply<uint32_t>(block);
    case ElementType::kI64:
      return multiply<uint64_t>(block);
    default:
      return multiply<double>(block);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
