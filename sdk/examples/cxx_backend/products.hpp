// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arithmetic of this backend: matrix products, and convolutions as such. It knows no graph.
#include <cstdint>

namespace plain {

// What is done to each sum before it is stored, in this order.
struct Ending {
  const float* bias = nullptr;   // by column, or by row where `is_by_row`
  const float* other = nullptr;  // lies as the result does, added
  bool is_by_row = false, has_relu = false;
};

// c = ending(alpha * a b), row-major, rows of c `step_c` apart. a: [m, k], or [k, m] where it is
// transposed; b likewise.
struct Product {
  int64_t m = 0, n = 0, k = 0, step_c = 0;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1;
};

// b in strips of columns, each strip [k, kStrip], zeros behind the last column.
constexpr int64_t kStrip = 32;
int64_t packed_floats(int64_t k, int64_t n);
void pack(const Product& product, const float* b, float* packed);

// Rows [first, last) of the product.
void multiply(const Product& product,
              const float* a,
              const float* packed_b,
              float* c,
              const Ending& ending,
              int64_t first,
              int64_t last);

// Two-dimensional, NCHW; w: [k, c / groups, r, s].
struct Convolution {
  int64_t images = 1, channels = 0, height = 0, width = 0;
  int64_t filters = 0, rows = 1, columns = 1, groups = 1;
  int64_t out_height = 0, out_width = 0;
  int64_t pad[2] = {0, 0}, stride[2] = {1, 1}, dilation[2] = {1, 1};

  int64_t depth() const { return channels / groups * rows * columns; }
  int64_t positions() const { return out_height * out_width; }
};

// One strip of the matrix [depth, positions] of an image's windows, from the channels of a group.
void pack_windows(const Convolution& conv, const float* x, float* packed, int64_t first_place);

}  // namespace plain
