// SPDX-License-Identifier: Apache-2.0
// Products of signs; contract in ../binary_product.h. A lane is a column: the bits in which a word
// of its signs differs from the row's are counted in the register and added up over all words.

#include "epilogue.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kColumns = static_cast<int>(kBinaryPanel);
constexpr int kRegisters = kColumns / kLanes;  // of a row's sums in one panel
constexpr int kMostRows = 3;                   // four leave GCC without registers
constexpr int kMostPanels = 4;

// How many bits differ, [rows][panels][kColumns].
struct Counts {
  alignas(64) int32_t of[kMostRows][kMostPanels * kColumns];
};

#if defined(__AVX512F__)
#define TENON_POPCOUNT __attribute__((target("avx512vpopcntdq"), noinline))

// GCC keeps the sums in registers only where all loops over them are unrolled.
template <int rows, int panels>
TENON_POPCOUNT void count_by_instruction(const BinaryBlock& block,
                                         int64_t row,
                                         int64_t column,
                                         Counts* to) {
  __m512i sums[rows][panels];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p)
      sums[r][p] = __m512i{};
  const int64_t words = block.words;
  const uint32_t* const a = block.rows + row * words;
  const uint32_t* const b = block.panels + column * words;
  for (int64_t k = 0; k < words; ++k) {
    __m512i right[panels];
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p)
      right[p] = load_vector<__m512i>(b + (p * words + k) * kColumns);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const __m512i left = _mm512_set1_epi32(static_cast<int32_t>(a[r * words + k]));
#pragma GCC unroll 4
      for (int p = 0; p < panels; ++p)
        sums[r][p] =
            _mm512_add_epi32(sums[r][p], _mm512_popcnt_epi32(_mm512_xor_si512(left, right[p])));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p)
      std::memcpy(to->of[r] + p * kColumns, &sums[r][p], sizeof(__m512i));
}
#endif

// Without the instruction: bits are counted by bytes, which are added as bytes.
constexpr int64_t kByteWords = 31;  // 8 * 31 is what a byte holds

template <int rows>
void count_bytes(const BinaryBlock& block, int64_t row, int64_t column, int at, Counts* to) {
  Vi sums[rows][kRegisters] = {};
  const int64_t words = block.words;
  const uint32_t* const a = block.rows + row * words;
  const uint32_t* const b = block.panels + column * words;
  for (int64_t first = 0; first < words; first += kByteWords) {
    const int64_t end = words - first < kByteWords ? words : first + kByteWords;
    Int8s bytes[rows][kRegisters] = {};
    for (int64_t k = first; k < end; ++k) {
      Vi right[kRegisters];
#pragma GCC unroll 4
      for (int v = 0; v < kRegisters; ++v)
        right[v] = load_vector<Vi>(b + k * kColumns + v * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const Vi left = splat_i(static_cast<int32_t>(a[r * words + k]));
#pragma GCC unroll 4
        for (int v = 0; v < kRegisters; ++v) {
          bytes[r][v] += bits_of_bytes(reinterpret_cast<Int8s>(left ^ right[v]));
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kRegisters; ++v)
        sums[r][v] += join_bytes(bytes[r][v]);
  }
  for (int r = 0; r < rows; ++r)
    std::memcpy(to->of[r] + at, sums[r], sizeof sums[r]);
}

template <int rows>
void count(const BinaryBlock& block, int64_t row, int64_t column, int panels, Counts* to) {
#if defined(__AVX512F__)
  if (block.has_popcount) {
    if (panels == kMostPanels)
      return count_by_instruction<rows, kMostPanels>(block, row, column, to);
    return count_by_instruction<rows, 1>(block, row, column, to);
  }
#endif
  for (int p = 0; p < panels; ++p)
    count_bytes<rows>(block, row, column + p * kColumns, p * kColumns, to);
}

// The rows of one panel, through all that follows.
template <int rows, class To>
void store_panel(const BinaryBlock& block,
                 const RowEpilogue<kRegisters>& row_epilogue,
                 const TileOf& tile,
                 int at,
                 const Counts& counts) {
  const Epilogue& epilogue = block.epilogue;
  Vi sums[rows][kRegisters];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kRegisters; ++v)
      sums[r][v] = load_vector<Vi>(block.shifts[tile.row + r] + tile.column + v * kLanes) -
                   2 * load_vector<Vi>(counts.of[r] + at + v * kLanes);
  To* const to = static_cast<To*>(epilogue.dst.data) + tile.row * epilogue.dst_stride + tile.column;
  if constexpr (sizeof(To) == sizeof(int32_t) && To(0.5F) == To(0)) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
      row_epilogue.store(to + r * epilogue.dst_stride, sums[r], tile.column);
  } else {
    Vf y[rows][kRegisters];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kRegisters; ++v)
        y[r][v] = to_float(sums[r][v]);
      row_epilogue.scale(y[r], tile.column, y[r]);
    }
    if (epilogue.n_ops > 0) apply_all<kRegisters>(epilogue, tile, y[0]);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
      row_epilogue.store(to + r * epilogue.dst_stride, y[r], tile.column);
  }
}

template <int rows, class To>
void multiply_rows(const BinaryBlock& block,
                   const RowEpilogue<kRegisters>& row_epilogue,
                   int64_t row,
                   int64_t column,
                   int panels) {
  Counts counts;
  count<rows>(block, row, column, panels, &counts);
  for (int p = 0; p < panels; ++p)
    store_panel<rows, To>(block, row_epilogue, {row, column + p * kColumns, rows}, p * kColumns,
                          counts);
}

// All rows by some panels, which stay in the cache meanwhile, then by the next.
template <class To>
void multiply(const BinaryBlock& block) {
  const RowEpilogue<kRegisters> row_epilogue(block.epilogue);
  const int64_t columns = block.epilogue.columns;
  for (int64_t column = 0; column < columns;) {
    const int panels = columns - column > (kMostPanels - 1) * kColumns ? kMostPanels : 1;
    int64_t row = 0;
    for (; row + kMostRows <= block.n_rows; row += kMostRows)
      multiply_rows<kMostRows, To>(block, row_epilogue, row, column, panels);
    for (; row < block.n_rows; ++row)
      multiply_rows<1, To>(block, row_epilogue, row, column, panels);
    column += panels * kColumns;
  }
}

}  // namespace

void binary_block(const BinaryBlock& block) {
  of_sum_type(block.epilogue.dst.type, [&]<class To>() { multiply<To>(block); });
}

void sign_rows(const SignsArgs& args, int64_t lo, int64_t hi) {
  constexpr int kWord = static_cast<int>(kSignsOfWord);
  const int64_t whole = args.channels / kWord, rest = args.channels % kWord;
  uint32_t* to = args.dst + lo * (whole + (rest != 0 ? 1 : 0));
  for (int64_t row = lo; row < hi; ++row) {
    const float* const x = args.src + row * args.src_stride;
    for (int64_t word = 0; word < whole; ++word) {
      uint32_t bits = 0;
#pragma GCC unroll 8
      for (int lane = 0; lane < kWord; lane += kLanes) {
        const int64_t c = word * kWord + lane;
        bits |= lanes_not_below(load(x + c), load(args.thresholds + c)) << lane;
      }
      *to++ = bits;
    }
    if (rest == 0) continue;
    uint32_t bits = 0;
    for (int64_t c = whole * kWord; c < args.channels; ++c)
      bits |= (x[c] >= args.thresholds[c] ? 1U : 0U) << (c % kWord);
    *to++ = bits;
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
