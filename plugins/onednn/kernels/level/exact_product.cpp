// SPDX-License-Identifier: Apache-2.0
// Products of reals and of integers; contract in ../exact_product.h. A tile is some rows times a
// panel of two registers, whose sums stay in registers over a piece of k. The rows of several
// panels are packed as well: [rows of a tile] side by side for each k. One column alone is
// multiplied by each row where both lie.

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
    if constexpr (T(0.5) != T(0))
      return fma(a, b, c);
    else
      return a * b + c;
  }
};

// Sums of numbers side by side: one for each lane of four registers, then over these in order.
template <class T>
T dot(const T* a, const T* b, int64_t n) {
  using R = Register<T>;
  using V = typename R::V;
  constexpr int kSums = 4;
  constexpr int64_t kStep = kSums * R::kLanes;
  V sums[kSums] = {};
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep)
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) {
      const int64_t at = i + s * R::kLanes;
      sums[s] = R::fused(load_vector<V>(a + at), load_vector<V>(b + at), sums[s]);
    }
  for (; i + R::kLanes <= n; i += R::kLanes)
    sums[0] = R::fused(load_vector<V>(a + i), load_vector<V>(b + i), sums[0]);
  const V all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  T total = 0;
  for (int lane = 0; lane < R::kLanes; ++lane)
    total += all[lane];
  for (; i < n; ++i)
    total += a[i] * b[i];
  return total;
}

template <class T>
void pack_panel(
    const T* b, int64_t b_k, int64_t b_column, int64_t depth, int64_t columns, T* panel) {
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
void pack(const ExactPack& args) {
  constexpr int kColumns = Register<T>::kColumns;
  T* panel = static_cast<T*>(args.panels);
  for (int64_t column = 0; column < args.columns; column += kColumns) {
    const int64_t left = args.columns - column;
    pack_panel(static_cast<const T*>(args.b) + column * args.b_column, args.b_k, args.b_column,
               args.depth, left < kColumns ? left : kColumns, panel);
    panel += args.depth * kColumns;
  }
}

// n rows side by side for each k.
template <class T>
void pack_rows(const T* a, int64_t a_row, int64_t a_k, int64_t n, int64_t depth, T* packed) {
  if (a_k == 1) return transpose_tile({a, packed, a_row, n, n, depth, sizeof(T)});
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t row = 0; row < n; ++row)
      packed[k * n + row] = a[row * a_row + k * a_k];
}

template <class T>
struct Tile {
  const T* a;
  int64_t a_row, a_k;
  const T* panel;
  int64_t depth;
  T* dst;
  int64_t dst_row;
  bool adds;       // to what dst holds
  bool is_packed;  // the rows
};

template <class T, int rows, bool is_packed>
void multiply_tile(const Tile<T>& tile) {
  using R = Register<T>;
  using V = typename R::V;
  const int64_t a_row = is_packed ? 1 : tile.a_row, a_k = is_packed ? rows : tile.a_k;
  V sums[rows][kWide];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v)
      sums[r][v] = tile.adds ? load_vector<V>(tile.dst + r * tile.dst_row + v * R::kLanes) : V{};
  const T* a = tile.a;
  const T* b = tile.panel;
#pragma GCC unroll 2
  for (int64_t k = 0; k < tile.depth; ++k, a += a_k, b += R::kColumns) {
    V right[kWide];
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v)
      right[v] = load_vector<V>(b + v * R::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const V left = a[r * a_row] - V{};
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
    if (n < rows) return multiply_rows<T, rows - 1>(tile, n);
    tile.is_packed ? multiply_tile<T, rows, true>(tile) : multiply_tile<T, rows, false>(tile);
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

// Some rows times all panels.
template <class T>
class Block {
 public:
  explicit Block(const ExactBlock& block)
      : block_(block),
        packs_rows_(block.right.columns >= kLeastPanels * kColumns),
        own_panel_(static_cast<T*>(block.room)),
        packed_rows_(own_panel_ + kExactDepth * kColumns) {}

  void multiply() const {
    if (is_column()) return multiply_column();
    int64_t k = 0;
    do {  // once where nothing is to be summed
      const int64_t rest = block_.right.depth - k;
      const int64_t depth = rest < kExactDepth ? rest : kExactDepth;
      if (packs_rows_) {
        for (int64_t row = 0; row < block_.rows; row += kRows)
          pack_rows(left(row, k), block_.a_row, block_.a_k, rows_at(row), depth,
                    packed_rows_ + row * depth);
      }
      for (int64_t column = 0; column < block_.right.columns; column += kColumns)
        multiply_panel(k, depth, column);
      k += kExactDepth;
    } while (k < block_.right.depth);
  }

 private:
  static constexpr int64_t kColumns = Register<T>::kColumns;

  bool is_column() const {
    const ExactPack& right = block_.right;
    return right.columns == 1 && right.b_k == 1 && block_.a_k == 1 && right.panels == nullptr;
  }
  void multiply_column() const {
    const T* const column = static_cast<const T*>(block_.right.b);
    for (int64_t row = 0; row < block_.rows; ++row)
      static_cast<T*>(block_.dst)[row * block_.dst_row] =
          dot(left(row, 0), column, block_.right.depth);
  }

  static constexpr int64_t kLeastPanels = 4;  // that pay for packed rows

  const T* left(int64_t row, int64_t k) const {
    return static_cast<const T*>(block_.a) + row * block_.a_row + k * block_.a_k;
  }
  int64_t rows_at(int64_t row) const {
    return block_.rows - row < kRows ? block_.rows - row : kRows;
  }

  const T* panel_at(int64_t k, int64_t depth, int64_t column, int64_t columns) const {
    const ExactPack& right = block_.right;
    if (right.panels != nullptr)
      return static_cast<const T*>(right.panels) + column * right.depth + k * kColumns;
    pack_panel(static_cast<const T*>(right.b) + k * right.b_k + column * right.b_column, right.b_k,
               right.b_column, depth, columns, own_panel_);
    return own_panel_;
  }

  void multiply_panel(int64_t k, int64_t depth, int64_t column) const {
    const int64_t rest = block_.right.columns - column;
    const int64_t columns = rest < kColumns ? rest : kColumns;
    const T* const panel = panel_at(k, depth, column, columns);
    for (int64_t row = 0; row < block_.rows; row += kRows) {
      const Tile<T> tile = {packs_rows_ ? packed_rows_ + row * depth : left(row, k),
                            block_.a_row,
                            block_.a_k,
                            panel,
                            depth,
                            static_cast<T*>(block_.dst) + row * block_.dst_row + column,
                            block_.dst_row,
                            k > 0,
                            packs_rows_};
      if (columns == kColumns)
        multiply_rows<T, kRows>(tile, rows_at(row));
      else
        multiply_narrow(tile, rows_at(row), columns);
    }
  }

  const ExactBlock& block_;
  const bool packs_rows_;
  T* const own_panel_;
  T* const packed_rows_;
};

template <class F>
void with_type(ElementType type, const F& f) {
  switch (type) {
    case ElementType::kF32:
      return f(float{});
    case ElementType::kI32:
      return f(uint32_t{});
    case ElementType::kI64:
      return f(uint64_t{});
    default:
      return f(double{});
  }
}

}  // namespace

void exact_pack(const ExactPack& args) {
  with_type(args.type, [&]<class T>(T) { pack<T>(args); });
}

void exact_block(const ExactBlock& block) {
  with_type(block.right.type, [&]<class T>(T) { Block<T>(block).multiply(); });
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
