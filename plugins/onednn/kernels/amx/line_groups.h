// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the windows of a first convolution see, as rows of a step of k each: a pixel of at most four
// channels takes four elements, and as many lines as fill a row are interleaved pixel by pixel. The
// rows of some lines are shared by the lines of the result that see them.

#include <cstring>

#include <immintrin.h>

#include "../tile_product_args.h"

namespace tenon::onednn::kernels::amx {

class LineGroups {
 public:
  explicit LineGroups(const TileLines& lines, uint8_t zero)
      : w_(lines), zero_(static_cast<char>(zero)) {}

  // Makes what `count` lines of the result see, from line `first` of an image. planes: of all
  // images.
  void make(const void* planes, int64_t image, int64_t first, int64_t count, char* to) {
    groups_ = to;
    first_ = first;
    switch (w_.source) {
      case ElementType::kF32:
        return make_groups(static_cast<const float*>(planes) + image * w_.image, count, to);
      case ElementType::kBf16:
        return make_groups(static_cast<const Bf16*>(planes) + image * w_.image, count, to);
      default:
        return make_groups(static_cast<const char*>(planes) + image * w_.image, count, to);
    }
  }
  // What the window at a place of the result sees in its first step; the next step is bytes() on.
  const char* at(int64_t y, int64_t x) const {
    return groups_ + group_of(y - first_, 0) * bytes() + x * kTileDepth;
  }
  int64_t bytes() const { return line_group_bytes(w_); }

 private:
  static constexpr int kPixels = 16;      // that are loaded at a time
  static constexpr int64_t kRun = 256;    // pixels that are interleaved at a time
  static constexpr int kPixelBytes = 16;  // of all interleaved lines, at most

  int64_t group_of(int64_t line, int64_t step) const {
    return w_.is_shared() ? line * w_.advance() + step : line * w_.steps + step;
  }

  template <class From>
  void make_groups(const From* image, int64_t count, char* to) const {
    const int64_t n_groups = group_of(count - 1, w_.steps - 1) + 1;
    const int64_t top = first_ * w_.stride_y - w_.pad_top;
    for (int64_t i = 0; i < n_groups; ++i) {
      const int64_t line = w_.is_shared()
                               ? top + i * w_.interleaved
                               : top + i / w_.steps * w_.stride_y + i % w_.steps * w_.interleaved;
      // The last step may see fewer lines, where it is no other line's step as well.
      const int64_t seen = w_.window_height - i % w_.steps * w_.interleaved;
      const bool is_partial = !w_.is_shared() && seen < w_.interleaved;
      make_group(image, line, is_partial ? seen : w_.interleaved, to + i * bytes());
    }
  }

  // Run by run, as the interleaved pixels of a whole line would leave no room in L1.
  template <class From>
  void make_group(const From* image, int64_t line, int64_t n_lines, char* to) const {
    alignas(64) char pixels[(kRun + kPixels) * kPixelBytes];
    const int64_t pixel = w_.interleaved * w_.pixel_bytes();
    const int64_t stride = w_.stride_x * pixel;
    const int64_t window = kTileDepth / pixel;
    const int64_t most = (kRun - window) / w_.stride_x + 1;
    const __mmask16 seen = seen_words();
    for (int64_t x = 0; x < w_.out_width; x += most) {
      const int64_t n = most < w_.out_width - x ? most : w_.out_width - x;
      interleave(image, line, n_lines, x * w_.stride_x - w_.pad_left,
                 (n - 1) * w_.stride_x + window, pixels);
      const char* from = pixels;
      for (int64_t i = 0; i < n; ++i, from += stride, to += kTileDepth)
        _mm512_store_si512(to, _mm512_maskz_loadu_epi32(seen, from));
    }
  }
  // Of a row, in words of four bytes. What lies behind the window may be infinite or NaN, which
  // zeros of the right operand do not hide; integers they do.
  __mmask16 seen_words() const {
    if (w_.has_integers()) return 0xffff;
    const int64_t words = w_.window_width * w_.interleaved * w_.pixel_bytes() / 4;
    return static_cast<__mmask16>((1U << words) - 1);
  }
  template <class From>
  void interleave(
      const From* image, int64_t line, int64_t n_lines, int64_t x, int64_t count, char* to) const {
    for (int64_t i = 0; i < count; i += kPixels) {
      Sixteen<From> lines[kPixelBytes / Sixteen<From>::kPixel] = {};
      for (int64_t l = 0; l < n_lines; ++l)
        lines[l] = sixteen(image, line + l, x + i);
      to = store(lines, to);
    }
  }

  // Sixteen pixels of one line.
  template <class From>
  struct Sixteen {
    static constexpr int kRegisters = sizeof(From) == 1 ? 1 : 2;
    static constexpr int kPixel = kRegisters * 4;  // bytes
    __m512i registers[kRegisters];
  };
  template <class From>
  Sixteen<From> sixteen(const From* image, int64_t line, int64_t x) const {
    const bool is_line = line >= 0 && line < w_.height;
    const __mmask16 mask = is_line ? inside(x) : __mmask16{0};
    const From* from = image + line * w_.width + x;
    decltype(load(from, mask)) planes[kLineChannels] = {};
    for (int64_t c = 0; c < w_.channels; ++c)
      planes[c] = load(from + c * w_.plane, mask);
    return pixels_of<From>(planes);
  }
  __m128i load(const char* from, __mmask16 mask) const {
    return _mm_mask_loadu_epi8(_mm_set1_epi8(zero_), mask, from);
  }
  static __m256i load(const Bf16* from, __mmask16 mask) {
    return _mm256_maskz_loadu_epi16(mask, from);
  }
  static __m256i load(const float* from, __mmask16 mask) {
    return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from)));
  }
  template <class From>
  static Sixteen<From> pixels_of(const __m128i* planes) {
    const __m256i pairs[] = {byte_pairs(planes[0], planes[1]), byte_pairs(planes[2], planes[3])};
    const __m256i low = _mm256_unpacklo_epi16(pairs[0], pairs[1]);
    const __m256i high = _mm256_unpackhi_epi16(pairs[0], pairs[1]);
    // Unpacking went by halves of registers.
    return {_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_permute2x128_si256(low, high, 0x20)),
                               _mm256_permute2x128_si256(low, high, 0x31), 1)};
  }
  static __m256i byte_pairs(__m128i a, __m128i b) {
    return _mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b));
  }
  template <class From>
  static Sixteen<From> pixels_of(const __m256i* planes) {
    const __m512i first = _mm512_inserti64x4(_mm512_castsi256_si512(planes[0]), planes[1], 1);
    const __m512i last = _mm512_inserti64x4(_mm512_castsi256_si512(planes[2]), planes[3], 1);
    // Word i of each of the four planes: of pixel 0 the numbers 0, 16, 32 and 48 of both registers.
    const __m512i order =
        _mm512_add_epi64(_mm512_set1_epi64(0x0030002000100000),
                         _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                                            _mm512_set1_epi64(0x0001000100010001)));
    const __m512i behind = _mm512_add_epi16(order, _mm512_set1_epi16(8));
    return {_mm512_permutex2var_epi16(first, order, last),
            _mm512_permutex2var_epi16(first, behind, last)};
  }
  __mmask16 inside(int64_t x) const {
    uint32_t mask = 0xffff;
    if (x < 0) mask = x > -kPixels ? mask << -x & 0xffff : 0;
    const int64_t rest = w_.width - x;
    if (rest < kPixels) mask &= rest > 0 ? (1U << rest) - 1 : 0;
    return static_cast<__mmask16>(mask);
  }

  static char* put(__m512i bytes, char* to) {
    std::memcpy(to, &bytes, sizeof bytes);
    return to + sizeof bytes;
  }
  char* store(const Sixteen<char>* lines, char* to) const {
    auto line = [&](int i) { return lines[i].registers[0]; };
    if (w_.interleaved == 1) return put(line(0), to);
    if (w_.interleaved == 2)
      return put(pairs<1>(line(0), line(1)), put(pairs<0>(line(0), line(1)), to));
    const __m512i upper[] = {pairs<0>(line(0), line(1)), pairs<1>(line(0), line(1))};
    const __m512i lower[] = {pairs<0>(line(2), line(3)), pairs<1>(line(2), line(3))};
    for (int half = 0; half < 2; ++half) {
      to = put(quads<0>(upper[half], lower[half]), to);
      to = put(quads<1>(upper[half], lower[half]), to);
    }
    return to;
  }
  template <class From>
  char* store(const Sixteen<From>* lines, char* to) const {
    for (int half = 0; half < 2; ++half) {
      const __m512i upper = lines[0].registers[half];
      const __m512i lower = lines[1].registers[half];
      if (w_.interleaved == 1)
        to = put(upper, to);
      else
        to = put(quads<1>(upper, lower), put(quads<0>(upper, lower), to));
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
