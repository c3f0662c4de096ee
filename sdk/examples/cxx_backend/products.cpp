// SPDX-License-Identifier: Apache-2.0
#include "products.hpp"

#include <algorithm>

namespace plain {
namespace {

constexpr int64_t kRows = 6;  // of a block whose sums stay in registers

// Sums of `rows` rows of a with one strip of b, by the compiler's vectors.
template <int64_t kCount>
void block(const float* const* a, int64_t step, int64_t k, const float* b, float (*sums)[kStrip]) {
  float part[kCount][kStrip] = {};
  for (int64_t i = 0; i < k; ++i, b += kStrip)
    for (int64_t row = 0; row < kCount; ++row) {
      const float x = a[row][i * step];
      for (int64_t j = 0; j < kStrip; ++j)
        part[row][j] += x * b[j];
    }
  for (int64_t row = 0; row < kCount; ++row)
    std::copy_n(part[row], kStrip, sums[row]);
}

void store(const Product& product,
           const Ending& ending,
           const float* sums,
           int64_t row,
           int64_t column,
           float* c) {
  const int64_t at = row * product.step_c + column, count = std::min(kStrip, product.n - column);
  for (int64_t j = 0; j < count; ++j) {
    float x = product.alpha * sums[j];
    if (ending.bias) x += ending.bias[ending.is_by_row ? row : column + j];
    if (ending.other) x += ending.other[at + j];
    c[at + j] = ending.has_relu && x < 0 ? 0 : x;
  }
}

}  // namespace

int64_t packed_floats(int64_t k, int64_t n) {
  return (n + kStrip - 1) / kStrip * kStrip * k;
}

void pack(const Product& product, const float* b, float* packed) {
  const int64_t k = product.k, n = product.n;
  const int64_t by_row = product.transpose_b ? 1 : n, by_column = product.transpose_b ? k : 1;
  for (int64_t strip = 0; strip < n; strip += kStrip)
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = strip; j < strip + kStrip; ++j)
        *packed++ = j < n ? b[i * by_row + j * by_column] : 0;
}

void multiply(const Product& product,
              const float* a,
              const float* packed_b,
              float* c,
              const Ending& ending,
              int64_t first,
              int64_t last) {
  const int64_t k = product.k;
  const int64_t by_row = product.transpose_a ? 1 : k, step = product.transpose_a ? product.m : 1;
  for (int64_t column = 0; column < product.n; column += kStrip) {
    const float* b = packed_b + column * k;
    for (int64_t row = first; row < last; row += kRows) {
      float sums[kRows][kStrip];
      const float* from[kRows];
      const int64_t rows = std::min(kRows, last - row);
      for (int64_t r = 0; r < kRows; ++r)
        from[r] = a + (row + std::min(r, rows - 1)) * by_row;
      if (rows == 1) {
        block<1>(from, step, k, b, sums);
      } else {
        block<kRows>(from, step, k, b, sums);
      }
      for (int64_t r = 0; r < rows; ++r)
        store(product, ending, sums[r], row + r, column, c);
    }
  }
}

void pack_windows(const Convolution& conv, const float* x, float* packed, int64_t first_place) {
  const int64_t channels = conv.channels / conv.groups;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t r = 0; r < conv.rows; ++r)
      for (int64_t s = 0; s < conv.columns; ++s)
        for (int64_t position = first_place; position < first_place + kStrip; ++position) {
          const int64_t h =
              position / conv.out_width * conv.stride[0] - conv.pad[0] + r * conv.dilation[0];
          const int64_t w =
              position % conv.out_width * conv.stride[1] - conv.pad[1] + s * conv.dilation[1];
          const bool is_inside =
              position < conv.positions() && h >= 0 && h < conv.height && w >= 0 && w < conv.width;
          *packed++ = is_inside ? x[(c * conv.height + h) * conv.width + w] : 0;
        }
}

}  // namespace plain
