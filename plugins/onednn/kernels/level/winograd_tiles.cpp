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
    for (int j = 0; j < extent; ++j) {
      const int64_t y = top + i;
      const int64_t x = left + j;
      const bool is_inside = exists && y >= 0 && y < height && x >= 0 && x < width;
      p.at[i * extent + j] =
          is_inside ? base + (y * width + x) * pixel : static_cast<const char*>(t.zeros);
    }
  }
  return p;
}

template <class Word, WinogradSide kSide>
TENON_INLINE void load_transformed(const Pixels& p, int64_t channel, Vf* tile) {
  constexpr int kPixels = kSide == WinogradSide::kSource ? 16 : 4;
  for (int i = 0; i < kPixels; ++i)
    tile[i] = load_lanes(reinterpret_cast<const typename Word::Element*>(p.at[i]) + channel);
  if constexpr (kSide == WinogradSide::kSource)
    transform_source(tile);
  else
    transform_result(tile);
}

// Words of neighbouring channels: one tile after the other.
template <class Word>
void by_channels(const WinogradTransform& t, int64_t lo, int64_t hi) {
  using Element = typename Word::Element;
  float* planes = static_cast<float*>(t.planes);
  for (int64_t tile = lo; tile < hi; ++tile) {
    const Pixels p = pixels_of(t, tile);
    float* to = planes + (tile - t.first) * t.row;
    for (int64_t c = 0; c < t.channels(); c += kLanes) {
      Vf values[kPlanes];
      load_transformed<Word, WinogradSide::kSource>(p, c, values);
      for (int i = 0; i < kPlanes; ++i)
        Word::put(reinterpret_cast<Element*>(to + i * t.plane) + c, values[i]);
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
      Vf values[kWord][kPlanes];
      for (int w = 0; w < kWord; ++w)
        load_transformed<Word, kSide>(p[w], c, values[w]);
      float* at = to + c / kWinogradColumns * t.block + c % kWinogradColumns;
      for (int i = 0; i < kPlanes; ++i) {
        Vf word[kWord];
        for (int w = 0; w < kWord; ++w)
          word[w] = values[w][i];
        Word::put_words(at + i * t.plane, word);
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
