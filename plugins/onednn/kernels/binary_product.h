// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of numbers that are +1 or -1, 32 of them a word (Rastegari et al., ECCV 2016, section
// 3.1). With a set bit for +1 a sum of k products is k - 2 popcount(a xor b):
//
//   sum = shifts[place(m)][n] - 2 sum_words popcount(a[m, word] xor b[word, n])      exact, in i32
//   i32:      y = sum
//   f32:      y = clip(sum * scales[n] + bias[n], low, high), behind the ops
//   u8, s8:   y = saturate(round(clip(sum * scales[n] + bias[n], low, high)) +
//   dst.quant.zero_point)
//
// The left operand's rows are those of a matrix, or what a convolution's window sees at each place
// of a channels-last image. What lies outside of the image counts as 0, as a convolution of real
// numbers has it, though no sign is 0: there the bits are not set, and the place's shifts take
// their share of the sum away (`border_shifts`).

#include <vector>

#include "binary_product_args.h"
#include "context.h"
#include "windows.h"

namespace tenon::onednn::kernels {

// A row is gathered on the stack: it may not have more words.
constexpr int64_t kMostBinaryWords = 4096;

constexpr int64_t words_of(int64_t signs) {
  return (signs + kSignsOfWord - 1) / kSignsOfWord;
}
constexpr int64_t packed_binary_columns(int64_t n) {
  return (n + kBinaryPanel - 1) / kBinaryPanel * kBinaryPanel;
}

// dst: kF32, kI32, kU8, kS8; scales and bias are not read for i32.
struct BinaryProductArgs : ProductResult {
  const uint32_t* a = nullptr;
  int64_t a_stride = 0;  // words from one row to the next, where there are no windows
  bool has_windows = false;
  ConvWindows windows = {};     // `pixel` and `channels` in words
  const uint32_t* b = nullptr;  // packed
  int64_t m = 0, n = 0;
  int64_t words = 0;                 // of a row
  const int32_t* shifts = nullptr;   // [kinds of places, packed_binary_columns(n)]
  const uint16_t* places = nullptr;  // the kind of each place of an image; absent: all the first
  bool with_popcount = true;  // the instruction, where the CPU has it; the results are the same
};

// b: [n, words], a column's signs side by side. Columns that are not there have no bit set.
void pack_binary(const uint32_t* b, int64_t n, int64_t words, uint32_t* packed);

// What the sums at each place begin with.
struct BorderShifts {
  std::vector<int32_t> shifts;   // [kinds, packed_binary_columns(n)]
  std::vector<uint16_t> places;  // [out_height * out_width]
};
// Of windows whose pixels have `channels` signs each; b as for pack_binary.
BorderShifts border_shifts(const ConvWindows& windows,
                           int64_t channels,
                           const uint32_t* b,
                           int64_t n);

void binary_product(const Context& context, const BinaryProductArgs& args);

void pack_signs(const Context& context, const SignsArgs& args, int64_t rows);

}  // namespace tenon::onednn::kernels
