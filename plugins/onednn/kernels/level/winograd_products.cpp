// SPDX-License-Identifier: Apache-2.0
// The products of minimal filtering, a matrix for each of the 16 planes, and what they become;
// contract in ../winograd.h.

#include "level.h"
#include "winograd_matrices.h"
#include "winograd_words.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

#if defined(__AVX512F__)
constexpr int kVectors = 4;  // of columns: 6 x 4 accumulators of 32 registers
#else
constexpr int kVectors = 2;  // 6 x 2 of 16
#endif
constexpr int kRows = static_cast<int>(kWinogradRows);
constexpr int kPlanes = static_cast<int>(kWinogradPlanes);

// One block of results, kept in registers.
template <class Word, int kWide>
void multiply(const WinogradProduct& p) {
  Vf sums[kRows][kWide];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v)
      sums[r][v] = p.accumulates ? load(p.c + r * p.c_row + v * kLanes) : Vf{};
  }
  const float* a = p.a;
  const float* b = p.b;
  for (int64_t d = 0; d < p.depth; ++d, a += p.a_step, b += p.b_step) {
    Vf columns[kWide];
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v)
      columns[v] = load(b + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const float word = a[r * p.a_row];
#pragma GCC unroll 4
      for (int v = 0; v < kWide; ++v)
        sums[r][v] = Word::dot(sums[r][v], word, columns[v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kWide; ++v)
      store(p.c + r * p.c_row + v * kLanes, sums[r][v]);
  }
}

using Multiply = void (*)(const WinogradProduct&);

template <class Word>
Multiply multiply_of(int64_t registers) {
#if defined(__AVX512F__)
  constexpr Multiply kAll[] = {multiply<Word, 1>, multiply<Word, 2>, multiply<Word, 3>,
                               multiply<Word, 4>};
  return kAll[(registers < kVectors ? registers : kVectors) - 1];
#else
  static_cast<void>(registers);  // 16 columns are whole pairs of registers
  return multiply<Word, kVectors>;
#endif
}

template <class Word>
void product(const WinogradProduct& p) {
  for (int64_t column = 0; column < p.columns; column += kVectors * kLanes) {
    const Multiply multiply = multiply_of<Word>((p.columns - column) / kLanes);
    for (int64_t row = 0; row < p.rows; row += kRows) {
      WinogradProduct block = p;
      block.a = p.a + row * p.a_row;
      block.b = p.b + column;
      block.c = p.c + row * p.c_row + column;
      multiply(block);
    }
  }
}

template <class Word>
struct Output {
  using Element = typename Word::Element;
  const WinogradConvolve& args;
  int64_t first, count;  // channels

  TENON_INLINE void put(const Output& o, int64_t pixel, int64_t c, Vf v) {
    const WinogradConvolve& args = o.args;
    const int64_t at = pixel * args.shape.out + o.first + c;
    if (args.bias != nullptr) v += load(args.bias + o.first + c);
    if (args.add != nullptr) v += load_lanes(static_cast<const Element*>(args.add) + at);
    // NaN stays, as in oneDNN's.
    if (args.relu) v = v < 0.0F ? Vf{} : v;
    Word::put(static_cast<Element*>(args.dst) + at, v);
  }

  // products: of this tile in plane 0
  void put_tile(int64_t tile, const float* products, int64_t plane) const {
    const WinogradShape& s = args.shape;
    const int64_t wide = s.tiles_wide();
    const int64_t image = tile / (wide * s.tiles_high());
    const int64_t y = tile / wide % s.tiles_high() * 2;
    const int64_t x = tile % wide * 2;
    const int64_t pixel = (image * s.out_height + y) * s.out_width + x;
    const bool has_right = x + 1 < s.out_width;
    const bool has_below = y + 1 < s.out_height;
    for (int64_t c = 0; c < count; c += kLanes) {
      Vf m[kPlanes];
      for (int i = 0; i < kPlanes; ++i)
        m[i] = load(products + i * plane + c);
      Vf made[4];
      results_of(m, made);
      put(*this, pixel, c, made[0]);
      if (has_right) put(*this, pixel + 1, c, made[1]);
      if (!has_below) continue;
      put(*this, pixel + s.out_width, c, made[2]);
      if (has_right) put(*this, pixel + s.out_width + 1, c, made[3]);
    }
  }
};

template <class Word>
void convolve(const WinogradConvolve& w, int64_t first, int64_t count) {
  const int64_t rows = winograd_rows(count);
  const int64_t depth = w.shape.in / Word::kWord;
  const int64_t plane = rows * kWinogradColumns;
  for (int64_t out = 0; out < w.shape.out; out += kWinogradColumns) {
    const int64_t left = w.shape.out - out;
    const int64_t columns = left < kWinogradColumns ? left : kWinogradColumns;
    const float* packed = static_cast<const float*>(w.packed) + out * depth;
    for (int64_t i = 0; i < kWinogradPlanes; ++i) {
      product<Word>({.a = static_cast<const float*>(w.planes) + i * w.plane,
                     .a_row = w.row,
                     .a_step = 1,
                     .b = packed + i * w.packed_plane,
                     .b_step = kWinogradColumns,
                     .c = w.products + i * plane,
                     .c_row = kWinogradColumns,
                     .rows = rows,
                     .columns = columns,
                     .depth = depth});
    }
    const Output<Word> output{w, out, columns};
    for (int64_t tile = 0; tile < count; ++tile)
      output.put_tile(first + tile, w.products + tile * kWinogradColumns, plane);
  }
}

}  // namespace

void winograd_product(const WinogradProduct& p) {
#if defined(__AVX512F__)
  if (p.type == ElementType::kBf16) return product<Pair>(p);
#endif
  product<Single>(p);
}

void winograd_convolve(const WinogradConvolve& w, int64_t first, int64_t count) {
#if defined(__AVX512F__)
  if (w.type == ElementType::kBf16) return convolve<Pair>(w, first, count);
#endif
  convolve<Single>(w, first, count);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
