// SPDX-License-Identifier: Apache-2.0
// Tiles of images to the 16 numbers that are multiplied; contract in ../winograd.h.

#include "level.h"
#include "winograd_matrices.h"
#include "winograd_words.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kPlanes = static_cast<int>(kWinogradPlanes);

struct Pixels {
  const char* at[kPlanes];
};

// side: 4 rows of 4, or 2 of 2 in the first four. What lies outside points to zeros.
Pixels pixels_of(const WinogradTransform& t, int64_t tile) {
  const WinogradShape& s = t.shape;
  const bool is_source = t.side == WinogradSide::kSource;
  const int extent = is_source ? 4 : 2;
  const int64_t height = is_source ? s.height : s.out_height;
  const int64_t width = is_source ? s.width : s.out_width;
  const int64_t pixel = t.channels() * element_bytes(t.type);
  const int64_t wide = s.tiles_wide();
  const int64_t image = tile / (wide * s.tiles_high());
  const int64_t top = tile / wide % s.tiles_high() * 2 - (is_source ? s.pad_top : 0);
  const int64_t left = tile % wide * 2 - (is_source ? s.pad_left : 0);
  const char* base = static_cast<const char*>(t.image) + image * height * width * pixel;
  const bool exists = tile < s.tiles();
  Pixels p;
  for (int i = 0; i < extent; ++i) {
    const bool has_row = exists && top + i >= 0 && top + i < height;
    const char* row = base + ((top + i) * width + left) * pixel;
    for (int j = 0; j < extent; ++j) {
      const bool is_inside = has_row && left + j >= 0 && left + j < width;
      p.at[i * extent + j] = is_inside ? row + j * pixel : static_cast<const char*>(t.zeros);
    }
  }
  return p;
}

template <class Word, WinogradSide kSide>
TENON_INLINE void load_rows(const Pixels& p, int64_t channel, Vf* tile) {
  constexpr int kPixels = kSide == WinogradSide::kSource ? 16 : 4;
#pragma GCC unroll 16
  for (int i = 0; i < kPixels; ++i)
    tile[i] = load_lanes(reinterpret_cast<const typename Word::Element*>(p.at[i]) + channel);
  if constexpr (kSide == WinogradSide::kSource)
    source_rows(tile);
  else
    result_rows(tile);
}
template <WinogradSide kSide>
TENON_INLINE void columns_of(const Vf* rows, int row, Vf* out) {
  if constexpr (kSide == WinogradSide::kSource)
    source_columns(rows, row, out);
  else
    result_columns(rows, row, out);
}

// Words of neighbouring channels: one tile after the other.
template <class Word>
void by_channels(const WinogradTransform& t, int64_t lo, int64_t hi) {
  using Element = typename Word::Element;
  constexpr WinogradSide kSide = WinogradSide::kSource;
  float* planes = static_cast<float*>(t.planes);
  for (int64_t tile = lo; tile < hi; ++tile) {
    const Pixels p = pixels_of(t, tile);
    float* to = planes + (tile - t.first) * t.row;
    for (int64_t c = 0; c < t.channels(); c += kLanes) {
      Vf rows[kPlanes];
      load_rows<Word, kSide>(p, c, rows);
#pragma GCC unroll 4
      for (int row = 0; row < 4; ++row) {
        Vf values[4];
        columns_of<kSide>(rows, row, values);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          Word::put(reinterpret_cast<Element*>(to + (4 * row + i) * t.plane) + c, values[i]);
      }
    }
  }
}

// Words of neighbouring tiles: sums go over tiles.
template <class Word, WinogradSide kSide>
void by_tiles(const WinogradTransform& t, int64_t lo, int64_t hi) {
  constexpr int kWord = Word::kWord;
  float* planes = static_cast<float*>(t.planes);
  for (int64_t tile = lo; tile < hi; tile += kWord) {
    Pixels p[kWord];
    for (int w = 0; w < kWord; ++w)
      p[w] = pixels_of(t, tile + w);
    float* to = planes + (tile - t.first) / kWord * t.row;
    for (int64_t c = 0; c < t.channels(); c += kLanes) {
      Vf rows[kWord][kPlanes];
#pragma GCC unroll 2
      for (int w = 0; w < kWord; ++w)
        load_rows<Word, kSide>(p[w], c, rows[w]);
      float* at = to + c / kWinogradColumns * t.block + c % kWinogradColumns;
#pragma GCC unroll 4
      for (int row = 0; row < 4; ++row) {
        Vf values[kWord][4];
#pragma GCC unroll 2
        for (int w = 0; w < kWord; ++w)
          columns_of<kSide>(rows[w], row, values[w]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          Vf word[kWord];
#pragma GCC unroll 2
          for (int w = 0; w < kWord; ++w)
            word[w] = values[w][i];
          Word::put_words(at + (4 * row + i) * t.plane, word);
        }
      }
    }
  }
}

template <class Word>
void transform(const WinogradTransform& t, int64_t lo, int64_t hi) {
  if (!t.by_tiles) return by_channels<Word>(t, lo, hi);
  if (t.side == WinogradSide::kSource) return by_tiles<Word, WinogradSide::kSource>(t, lo, hi);
  by_tiles<Word, WinogradSide::kResult>(t, lo, hi);
}

}  // namespace

void winograd_transform(const WinogradTransform& t, int64_t lo, int64_t hi) {
#if defined(__AVX512F__)
  if (t.type == ElementType::kBf16) return transform<Pair>(t, lo, hi);
#endif
  transform<Single>(t, lo, hi);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
