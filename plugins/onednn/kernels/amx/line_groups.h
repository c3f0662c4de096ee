// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the windows of a first convolution see, as rows of a step of k each: pixels of at most four
// channels take four bytes, and as many lines as fill a row are interleaved pixel by pixel. The
// rows of some lines are shared by the lines of the result that see them.

#include <cstring>

#include <immintrin.h>

#include "../tile_product_args.h"

namespace tenon::onednn::kernels::amx {

class LineGroups {
 public:
  explicit LineGroups(const TileLines& lines, uint8_t zero)
      : w_(lines), zero_(static_cast<char>(zero)) {}

  // Makes what `count` lines of the result see, from line `first` of an image.
  void make(const char* image, int64_t first, int64_t count, char* to) {
    groups_ = to;
    first_ = first;
    const int64_t n_groups = group_of(count - 1, w_.steps - 1) + 1;
    const int64_t top = first * w_.stride_y - w_.pad_top;
    for (int64_t i = 0; i < n_groups; ++i) {
      const int64_t line = w_.is_shared()
                               ? top + i * w_.stride_y
                               : top + i / w_.steps * w_.stride_y + i % w_.steps * w_.interleaved;
      // The last step may see fewer lines, where it is no other line's step as well.
      const int64_t seen = w_.window_height - i % w_.steps * w_.interleaved;
      const bool is_partial = !w_.is_shared() && seen < w_.interleaved;
      make_group(image, line, is_partial ? seen : w_.interleaved, to + i * bytes());
    }
  }
  // What the window at a place of the result sees in its first step; the next step is bytes() on.
  const char* at(int64_t y, int64_t x) const {
    return groups_ + group_of(y - first_, 0) * bytes() + x * kTileDepth;
  }
  int64_t bytes() const { return line_group_bytes(w_); }

 private:
  static constexpr int kPixels = 16;      // of a register
  static constexpr int64_t kRun = 256;    // pixels that are interleaved at a time
  static constexpr int kPixelBytes = 16;  // of four interleaved lines

  int64_t group_of(int64_t line, int64_t step) const {
    return w_.is_shared() ? line + step : line * w_.steps + step;
  }

  // Run by run, as the interleaved pixels of a whole line would leave no room in L1.
  void make_group(const char* image, int64_t line, int64_t n_lines, char* to) const {
    alignas(64) char pixels[(kRun + kPixels) * kPixelBytes];
    const int64_t pixel = w_.interleaved * kLinePixel;
    const int64_t stride = w_.stride_x * pixel;
    const int64_t window = kTileDepth / pixel;
    const int64_t most = (kRun - window) / w_.stride_x + 1;
    for (int64_t x = 0; x < w_.out_width; x += most) {
      const int64_t n = most < w_.out_width - x ? most : w_.out_width - x;
      interleave(image, line, n_lines, x * w_.stride_x - w_.pad_left,
                 (n - 1) * w_.stride_x + window, pixels);
      const char* from = pixels;
      for (int64_t i = 0; i < n; ++i, from += stride, to += kTileDepth)
        _mm512_store_si512(to, _mm512_loadu_si512(from));
    }
  }
  void interleave(
      const char* image, int64_t line, int64_t n_lines, int64_t x, int64_t count, char* to) const {
    for (int64_t i = 0; i < count; i += kPixels) {
      __m512i pixels[4] = {};
      for (int64_t l = 0; l < n_lines; ++l)
        pixels[l] = sixteen(image, line + l, x + i);
      to = store(pixels, to);
    }
  }

  // Pixels [x, x + 16) of a line, four bytes each.
  __m512i sixteen(const char* image, int64_t line, int64_t x) const {
    const __m128i outside = _mm_set1_epi8(zero_);
    const bool is_line = line >= 0 && line < w_.height;
    const __mmask16 mask = is_line ? inside(x) : __mmask16{0};
    const char* from = image + line * w_.width + x;
    __m128i planes[kLinePixel];
    for (int64_t c = 0; c < kLinePixel; ++c)
      planes[c] = c < w_.channels ? _mm_mask_loadu_epi8(outside, mask, from + c * w_.plane)
                                  : _mm_setzero_si128();
    const __m256i pairs[] = {byte_pairs(planes[0], planes[1]), byte_pairs(planes[2], planes[3])};
    const __m256i low = _mm256_unpacklo_epi16(pairs[0], pairs[1]);
    const __m256i high = _mm256_unpackhi_epi16(pairs[0], pairs[1]);
    // Unpacking went by halves of registers.
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_permute2x128_si256(low, high, 0x20)),
                              _mm256_permute2x128_si256(low, high, 0x31), 1);
  }
  static __m256i byte_pairs(__m128i a, __m128i b) {
    return _mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b));
  }
  __mmask16 inside(int64_t x) const {
    uint32_t mask = 0xffff;
    if (x < 0) mask = x > -kPixels ? mask << -x & 0xffff : 0;
    const int64_t rest = w_.width - x;
    if (rest < kPixels) mask &= rest > 0 ? (1U << rest) - 1 : 0;
    return static_cast<__mmask16>(mask);
  }

  char* store(const __m512i* lines, char* to) const {
    auto put = [&](__m512i bytes) {
      std::memcpy(to, &bytes, sizeof bytes);
      to += sizeof bytes;
    };
    if (w_.interleaved == 1) {
      put(lines[0]);
    } else if (w_.interleaved == 2) {
      put(pairs<0>(lines[0], lines[1]));
      put(pairs<1>(lines[0], lines[1]));
    } else {
      const __m512i upper[] = {pairs<0>(lines[0], lines[1]), pairs<1>(lines[0], lines[1])};
      const __m512i lower[] = {pairs<0>(lines[2], lines[3]), pairs<1>(lines[2], lines[3])};
      for (int half = 0; half < 2; ++half) {
        put(quads<0>(upper[half], lower[half]));
        put(quads<1>(upper[half], lower[half]));
      }
    }
    return to;
  }
  // One half of two registers, element by element in turn.
  template <int half>
  static __m512i pairs(__m512i a, __m512i b) {
    constexpr int h = 8 * half;
    const __m512i order =
        _mm512_setr_epi32(h, h + 16, h + 1, h + 17, h + 2, h + 18, h + 3, h + 19, h + 4, h + 20,
                          h + 5, h + 21, h + 6, h + 22, h + 7, h + 23);
    return _mm512_permutex2var_epi32(a, order, b);
  }
  template <int half>
  static __m512i quads(__m512i a, __m512i b) {
    constexpr int h = 4 * half;
    const __m512i order = _mm512_setr_epi64(h, h + 8, h + 1, h + 9, h + 2, h + 10, h + 3, h + 11);
    return _mm512_permutex2var_epi64(a, order, b);
  }

  const TileLines& w_;
  char zero_;
  const char* groups_ = nullptr;
  int64_t first_ = 0;  // line of the result
};

}  // namespace tenon::onednn::kernels::amx
