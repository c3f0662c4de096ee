// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows or columns of f32 numbers, split into bf16 parts as tiles load them:
// [step of k][half of the rows or columns][part][16][32]. Tiles multiply pairs of k; here elements
// i and i + 16 of a step are a pair, so that one shift and one selection pack two registers.

#include <immintrin.h>

#include "../bf16x6_product_args.h"
#include "blocks.h"

namespace tenon::onednn::kernels::amx {

// To the nearest bf16, as f32; halves away from zero.
TENON_INLINE __m512 nearest_part(__m512 x) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  return _mm512_castsi512_ps(
      _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), upper));
}
// The last part of a number near the denormal ones has bits below those of bf16: they are cut off.
TENON_INLINE __m512i pack_pairs(__m512 low, __m512 high) {
  constexpr int kFirstOrBothOthers = 0xf8;
  const auto low_words = reinterpret_cast<__m512i>(reinterpret_cast<__v16su>(low) >> 16);
  return _mm512_ternarylogic_epi32(low_words, _mm512_castps_si512(high),
                                   _mm512_set1_epi32(static_cast<int>(0xffff0000)),
                                   kFirstOrBothOthers);
}
// Returns the last parts, which are NaN where the first one is not finite.
TENON_INLINE __m512i split_pairs(__m512 low, __m512 high, char* to) {
  constexpr int64_t kPart = 16 * kTileDepth;
  const __m512 low_0 = nearest_part(low), high_0 = nearest_part(high);
  _mm512_store_si512(to, pack_pairs(low_0, high_0));
  low = low - low_0;
  high = high - high_0;
  const __m512 low_1 = nearest_part(low), high_1 = nearest_part(high);
  _mm512_store_si512(to + kPart, pack_pairs(low_1, high_1));
  const __m512i last = pack_pairs(low - low_1, high - high_1);
  _mm512_store_si512(to + 2 * kPart, last);
  return last;
}

// Where a row of what windows see lies: tap by tap.
class WindowRow {
 public:
  WindowRow(const SplitProductArgs& args, int64_t row) : w_(args.windows), image_(args.a) {
    const int64_t y = row / w_.out_width;
    top_ = y % w_.out_height * w_.stride_y - w_.pad_top;
    left_ = row % w_.out_width * w_.stride_x - w_.pad_left;
    image_ += y / w_.out_height * w_.height * w_.width * w_.pixel;
  }
  // The pixel that a tap sees; null: none.
  const float* pixel(int64_t tap) const {
    const int64_t y = top_ + tap / w_.window_width * w_.step_y;
    const int64_t x = left_ + tap % w_.window_width * w_.step_x;
    const bool is_seen = is_inside(y, w_.height) && is_inside(x, w_.width);
    return is_seen ? image_ + (y * w_.width + x) * w_.pixel : nullptr;
  }

 private:
  const ConvWindows& w_;
  const float* image_;
  int64_t top_, left_;
};

// In each lane of four, elements i and i + 1 of both in turn, and pairs i and i + 1.
template <int i>
TENON_INLINE __m512 interleave(__m512 a, __m512 b) {
  return __builtin_shufflevector(a, b, i, 16 + i, i + 1, 17 + i, 4 + i, 20 + i, 5 + i, 21 + i,
                                 8 + i, 24 + i, 9 + i, 25 + i, 12 + i, 28 + i, 13 + i, 29 + i);
}
template <int i>
TENON_INLINE __m512 interleave_pairs(__m512 a, __m512 b) {
  return _mm512_castpd_ps(__builtin_shufflevector(_mm512_castps_pd(a), _mm512_castps_pd(b), i,
                                                  8 + i, 2 + i, 10 + i, 4 + i, 12 + i, 6 + i,
                                                  14 + i));
}
// From 16 lines of 4 numbers, `stride` apart, 4 vectors of one number of each line. Inserts read
// memory, so that only the 8 shuffles need the port of shuffles.
TENON_INLINE void transpose_fours(const float* from, int64_t stride, __m512 (&to)[4]) {
  auto every_fourth = [&](int line) {
    const float* at = from + line * stride;
    __m512 lanes = _mm512_castps128_ps512(_mm_loadu_ps(at));
    lanes = _mm512_insertf32x4(lanes, _mm_loadu_ps(at + 4 * stride), 1);
    lanes = _mm512_insertf32x4(lanes, _mm_loadu_ps(at + 8 * stride), 2);
    return _mm512_insertf32x4(lanes, _mm_loadu_ps(at + 12 * stride), 3);
  };
  const __m512 a = every_fourth(0), b = every_fourth(1);
  const __m512 c = every_fourth(2), d = every_fourth(3);
  to[0] = interleave_pairs<0>(interleave<0>(a, b), interleave<0>(c, d));
  to[1] = interleave_pairs<1>(interleave<0>(a, b), interleave<0>(c, d));
  to[2] = interleave_pairs<0>(interleave<2>(a, b), interleave<2>(c, d));
  to[3] = interleave_pairs<1>(interleave<2>(a, b), interleave<2>(c, d));
}
// The same where not all lines and numbers are there; zeros in place of the others.
[[gnu::noinline]] inline void transpose_some(
    const float* from, int64_t stride, int64_t lines, int64_t numbers, __m512 (&to)[4]) {
  float whole[64] = {};
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t i = 0; i < numbers; ++i)
      whole[4 * line + i] = from[line * stride + i];
  transpose_fours(whole, 4, to);
}

// 32 rows or columns times one piece of k.
struct SplitBlock {
  const float* from = nullptr;             // null: there is nothing to split, or windows see it
  const SplitProductArgs* args = nullptr;  // of rows that windows see; else null
  int64_t row = 0;                         // the first one of those
  int64_t first = 0;                       // and the first step of their piece
  int64_t ahead = 0;  // from here to the block that is split after the next one
  // Elements between rows of the left operand, or from k to the next one of the right one; if
  // transposed the other way round.
  int64_t stride = 0;
  bool is_right = false;
  bool is_transposed = false;
  bool has_parts = true;  // of the right operand: that is known
  int count = 0;          // rows or columns
  int n_steps = 0;
  int last = 0;  // elements of k in the last step
};

// Splits a block little by little, beside the products of others.
class Splitter {
 public:
  void begin(const SplitBlock& block, char* to) {
    block_ = block;
    to_ = to;
    row_ = step_ = 0;
    largest_ = _mm512_setzero_si512();
    unsplit_ = 0;
  }
  // All of it; a step of k of 32 rows or columns is 32 of them.
  int n_takes() const {
    if (is_empty()) return 0;
    return (block_.is_right ? kSplitDepth : in_fours(block_.count)) * block_.n_steps;
  }
  [[gnu::noinline]] void take(int count) {
    if (is_empty()) return;
    if (block_.is_transposed)
      take_fours(count);
    else if (block_.is_right)
      take_columns(count);
    else
      take_rows(count);
  }
  // Bit i: row i has a number without parts; of the right operand, not 0: some column has.
  uint32_t unsplit() const {
    if (!block_.is_right) return unsplit_;
    return has_unsplit(largest_) ? 1 : 0;
  }

 private:
  static constexpr int kHalf = 16;

  // Pieces of rows are too short for the CPU to see them coming.
  TENON_INLINE void prefetch(const float* low, const float* high) const {
    _mm_prefetch(low + block_.ahead, _MM_HINT_T1);
    _mm_prefetch(high + block_.ahead, _MM_HINT_T1);
  }

  bool is_empty() const { return block_.from == nullptr && block_.args == nullptr; }

  // NaN are the largest ones, without their sign.
  TENON_INLINE static __m512i larger(__m512i largest, __m512i parts) {
    return _mm512_max_epu16(largest, _mm512_add_epi16(parts, parts));
  }
  TENON_INLINE static bool has_unsplit(__m512i largest) {
    const __m512i infinity = _mm512_set1_epi16(static_cast<int16_t>(0xff00));
    return _mm512_cmpge_epu16_mask(largest, infinity) != 0;
  }
  static int in_fours(int rows) { return (rows + 3) / 4 * 4; }

  void take_rows(int count) {
    while (count > 0 && row_ < block_.count) {
      const int left = block_.n_steps - step_;
      int run = count < left ? count : left;
      if (block_.args == nullptr)
        split_row(block_.from + row_ * block_.stride + step_ * kSplitDepth, run);
      else
        run = split_window(run);
      count -= run;
      step_ += run;
      if (step_ < block_.n_steps) continue;
      end_row();
      step_ = 0;
      ++row_;
    }
  }
  char* parts() const {
    return to_ + step_ * kSplitBlockBytes + row_ / kHalf * kSplitTileBytes +
           row_ % kHalf * kTileDepth;
  }

  // So many steps at most, of one tap; returns how many.
  int split_window(int most) {
    const SplitProductArgs& args = *block_.args;
    const int64_t tap_steps = args.windows.channels / kSplitDepth;
    const int64_t step = block_.first + step_;
    const int64_t left = tap_steps - step % tap_steps;
    const int run = most < left ? most : static_cast<int>(left);
    const float* const pixel = WindowRow(args, block_.row + row_).pixel(step / tap_steps);
    if (pixel != nullptr) {
      split_row(pixel + step % tap_steps * kSplitDepth, run);
      return run;
    }
    char* to = parts();
    for (int i = 0; i < run; ++i, to += kSplitBlockBytes)
      for (int64_t part = 0; part < kSplitParts; ++part)
        _mm512_store_si512(to + part * kHalf * kTileDepth, _mm512_setzero_si512());
    return run;
  }

  void split_row(const float* from, int run) {
    char* to = parts();
    __m512i largest = largest_;
    auto see = [&](__m512i parts) { largest = larger(largest, parts); };
    const bool is_cut = step_ + run == block_.n_steps && block_.last < kSplitDepth;
    for (int i = is_cut ? 1 : 0; i < run; ++i, from += kSplitDepth, to += kSplitBlockBytes) {
      prefetch(from, from + kHalf);
      see(split_pairs(_mm512_loadu_ps(from), _mm512_loadu_ps(from + kHalf), to));
    }
    if (is_cut) {
      const uint32_t mask = (uint32_t{1} << block_.last) - 1;
      see(split_pairs(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from),
                      _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> kHalf), from + kHalf),
                      to));
    }
    largest_ = largest;
  }
  void end_row() {
    if (has_unsplit(largest_)) unsplit_ |= uint32_t{1} << row_;
    largest_ = _mm512_setzero_si512();
  }

  int depth() const { return step_ + 1 == block_.n_steps ? block_.last : kSplitDepth; }

  // Pairs of k one after the other, of each both halves of the columns.
  void take_columns(int count) {
    while (count > 0 && step_ < block_.n_steps) {
      const int left = kSplitDepth - row_;
      const int run = count < left ? count : left;
      for (int i = row_; i < row_ + run; ++i)
        split_columns(i / 2, i % 2);
      count -= run;
      row_ += run;
      if (row_ < kSplitDepth) continue;
      row_ = 0;
      ++step_;
    }
  }
  TENON_INLINE void split_columns(int pair, int half) {
    const float* from = block_.from + step_ * kSplitDepth * block_.stride + half * kHalf;
    const auto columns =
        static_cast<__mmask16>(((uint64_t{1} << block_.count) - 1) >> half * kHalf);
    auto row = [&](int k) {
      return k < depth() ? _mm512_maskz_loadu_ps(columns, from + k * block_.stride)
                         : _mm512_setzero_ps();
    };
    prefetch(from + pair * block_.stride, from + (pair + kHalf) * block_.stride);
    const __m512i parts = split_pairs(row(pair), row(pair + kHalf), pairs(pair, half));
    if (!block_.has_parts) largest_ = larger(largest_, parts);
  }
  char* pairs(int pair, int half) const {
    return to_ + step_ * kSplitBlockBytes + half * kSplitTileBytes + pair * kTileDepth;
  }

  // Four rows of a step of k at a time, or four pairs of k of half of the columns.
  void take_fours(int count) {
    for (; count > 0 && step_ < block_.n_steps; count -= 4) {
      if (block_.is_right)
        split_four_pairs(row_ / 8 * 4, row_ % 8 / 4);
      else
        split_four_rows();
      row_ += 4;
      if (row_ < (block_.is_right ? kSplitDepth : block_.count)) continue;
      row_ = 0;
      ++step_;
    }
  }
  void split_four_rows() {
    const float* const from = block_.from + step_ * kSplitDepth * block_.stride + row_;
    const int n = block_.count - row_ < 4 ? block_.count - row_ : 4;
    __m512 low[4], high[4];
    transpose(from, depth(), n, low);
    transpose(from + kHalf * block_.stride, depth() - kHalf, n, high);
    __m512i largest = _mm512_setzero_si512();
    for (int i = 0; i < 4; ++i) {
      const __m512i parts = split_pairs(low[i], high[i], this->parts() + i * kTileDepth);
      largest = larger(largest, parts);
      if (has_unsplit(largest)) [[unlikely]] {
        unsplit_ |= uint32_t{1} << (row_ + i);
        largest = _mm512_setzero_si512();
      }
    }
  }
  void split_four_pairs(int pair, int half) {
    const float* const from =
        block_.from + half * kHalf * block_.stride + step_ * kSplitDepth + pair;
    const int columns = block_.count - half * kHalf;
    __m512 low[4], high[4];
    transpose(from, columns, depth() - pair, low);
    transpose(from + kHalf, columns, depth() - pair - kHalf, high);
    for (int i = 0; i < 4; ++i)
      largest_ = larger(largest_, split_pairs(low[i], high[i], pairs(pair + i, half)));
  }
  TENON_INLINE void transpose(const float* from, int lines, int numbers, __m512 (&to)[4]) const {
    if (lines >= kHalf && numbers >= 4) [[likely]]
      return transpose_fours(from, block_.stride, to);
    transpose_some(from, block_.stride, least_of(lines, kHalf), least_of(numbers, 4), to);
  }

  SplitBlock block_;
  char* to_ = nullptr;
  int row_ = 0;  // or the half of a pair of k
  int step_ = 0;
  __m512i largest_ = {};
  uint32_t unsplit_ = 0;
};

}  // namespace tenon::onednn::kernels::amx
