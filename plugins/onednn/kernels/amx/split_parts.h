// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows or columns of f32 numbers, split into bf16 parts as tiles load them:
// [step of k][half of the rows or columns][part][16][32]. Tiles multiply pairs of k; here elements
// i and i + 16 of a step are a pair, so that one shift and one selection pack two registers.

#include <immintrin.h>

#include "../bf16x6_product_args.h"
#include "ending.h"

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
  return _mm512_ternarylogic_epi32(
      _mm512_srli_epi32(_mm512_castps_si512(low), 16), _mm512_castps_si512(high),
      _mm512_set1_epi32(static_cast<int>(0xffff0000)), kFirstOrBothOthers);
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

// 32 rows or columns times one piece of k.
struct SplitBlock {
  const float* from = nullptr;             // null: there is nothing to split, or windows see it
  const SplitProductArgs* args = nullptr;  // of rows that windows see; else null
  int64_t row = 0;                         // the first one of those
  int64_t first = 0;                       // and the first step of their piece
  int64_t ahead = 0;   // from here to the block that is split after the next one
  int64_t stride = 0;  // elements between rows, or from k to the next one
  bool is_right = false;
  int n_rows = 0;  // of the left operand
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
    return (block_.is_right ? kSplitDepth : block_.n_rows) * block_.n_steps;
  }
  [[gnu::noinline]] void take(int count) {
    if (is_empty()) return;
    if (block_.is_right)
      take_columns(count);
    else
      take_rows(count);
  }
  // Bit i: row i has a number without parts.
  uint32_t unsplit() const { return unsplit_; }

 private:
  static constexpr int kHalf = 16;

  // Pieces of rows are too short for the CPU to see them coming.
  TENON_INLINE void prefetch(const float* low, const float* high) const {
    _mm_prefetch(low + block_.ahead, _MM_HINT_T1);
    _mm_prefetch(high + block_.ahead, _MM_HINT_T1);
  }

  bool is_empty() const { return block_.from == nullptr && block_.args == nullptr; }

  void take_rows(int count) {
    while (count > 0 && row_ < block_.n_rows) {
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
    auto see = [&](__m512i parts) {  // NaN are the largest ones, without their sign
      largest = _mm512_max_epu16(largest, _mm512_add_epi16(parts, parts));
    };
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
    const __m512i infinity = _mm512_set1_epi16(static_cast<int16_t>(0xff00));
    if (_mm512_cmpge_epu16_mask(largest_, infinity) != 0) unsplit_ |= uint32_t{1} << row_;
    largest_ = _mm512_setzero_si512();
  }

  // Pairs of k one after the other, of each both halves of the columns.
  void take_columns(int count) {
    while (count > 0 && step_ < block_.n_steps) {
      const int left = kSplitDepth - row_;
      const int run = count < left ? count : left;
      const int depth = step_ + 1 == block_.n_steps ? block_.last : kSplitDepth;
      for (int i = row_; i < row_ + run; ++i)
        split_columns(i / 2, i % 2, depth);
      count -= run;
      row_ += run;
      if (row_ < kSplitDepth) continue;
      row_ = 0;
      ++step_;
    }
  }
  TENON_INLINE void split_columns(int pair, int half, int depth) const {
    const float* from = block_.from + step_ * kSplitDepth * block_.stride + half * kHalf;
    auto row = [&](int k) {
      return k < depth ? _mm512_loadu_ps(from + k * block_.stride) : _mm512_setzero_ps();
    };
    prefetch(from + pair * block_.stride, from + (pair + kHalf) * block_.stride);
    split_pairs(row(pair), row(pair + kHalf),
                to_ + step_ * kSplitBlockBytes + half * kSplitTileBytes + pair * kTileDepth);
  }

  SplitBlock block_;
  char* to_ = nullptr;
  int row_ = 0;  // or the half of a pair of k
  int step_ = 0;
  __m512i largest_ = {};
  uint32_t unsplit_ = 0;
};

}  // namespace tenon::onednn::kernels::amx
