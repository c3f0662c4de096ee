// SPDX-License-Identifier: Apache-2.0
#pragma once
// The matrices of minimal filtering F(2x2, 3x3), kLanes channels at once: Lavin and Gray, "Fast
// algorithms for convolutional neural networks" (2016), section 4.1. A result is
// A^T ((G g G^T) * (B^T d B)) A; the gradient of the weights is G^T ((B^T d B) * (A e A^T)) G.

#include "simd.h"

#define TENON_INLINE static inline __attribute__((always_inline))

namespace tenon::onednn::kernels::TENON_LEVEL {

// One dimension of each: four numbers from four or two, and back to two or three.
TENON_INLINE void source_side(const Vf* d, int step, Vf* out) {
  out[0] = d[0] - d[2 * step];
  out[step] = d[step] + d[2 * step];
  out[2 * step] = d[2 * step] - d[step];
  out[3 * step] = d[step] - d[3 * step];
}

// Each transform of a tile in two steps, rows and then columns: of two tiles at once the registers
// hold one step's row.
TENON_INLINE void source_rows(Vf* tile) {
  Vf rows[16];
  for (int i = 0; i < 4; ++i)
    source_side(tile + i, 4, rows + i);
  for (int i = 0; i < 16; ++i)
    tile[i] = rows[i];
}
TENON_INLINE void source_columns(const Vf* rows, int row, Vf* out) {
  source_side(rows + 4 * row, 1, out);
}

// tile: the 2x2 in its first four -> [4][2]
TENON_INLINE void result_rows(Vf* tile) {
  const Vf low[2] = {tile[2], tile[3]};
  for (int j = 0; j < 2; ++j) {
    tile[6 + j] = -low[j];
    tile[4 + j] = tile[j] - low[j];
    tile[2 + j] = tile[j] + low[j];
  }
}
TENON_INLINE void result_columns(const Vf* rows, int row, Vf* out) {
  out[0] = rows[2 * row];
  out[1] = rows[2 * row] + rows[2 * row + 1];
  out[2] = rows[2 * row] - rows[2 * row + 1];
  out[3] = -rows[2 * row + 1];
}

// [16] products -> [4] results
TENON_INLINE void results_of(const Vf* m, Vf* y) {
  Vf rows[8];  // [2][4]
  for (int j = 0; j < 4; ++j) {
    rows[j] = m[j] + m[4 + j] + m[8 + j];
    rows[4 + j] = m[4 + j] - m[8 + j] - m[12 + j];
  }
  for (int i = 0; i < 2; ++i) {
    const Vf* r = rows + 4 * i;
    y[2 * i] = r[0] + r[1] + r[2];
    y[2 * i + 1] = r[1] - r[2] - r[3];
  }
}

// One dimension of the weights: 3 -> 4.
TENON_INLINE void weight_side(const Vf* g, int from, Vf* u, int to) {
  Vf outer = (g[0] + g[2 * from]) * 0.5F;
  Vf half = g[from] * 0.5F;
  u[0] = g[0];
  u[to] = outer + half;
  u[2 * to] = outer - half;
  u[3 * to] = g[2 * from];
}

TENON_INLINE void transform_weights(const Vf* g, Vf* u) {
  Vf rows[12];  // [4][3]
  for (int j = 0; j < 3; ++j)
    weight_side(g + j, 3, rows + j, 3);
  for (int i = 0; i < 4; ++i)
    weight_side(rows + 3 * i, 1, u + 4 * i, 1);
}

// Its transpose, 4 -> 3.
TENON_INLINE void gradient_side(const Vf* u, int from, Vf* g, int to) {
  Vf sum = (u[from] + u[2 * from]) * 0.5F;
  g[0] = u[0] + sum;
  g[to] = (u[from] - u[2 * from]) * 0.5F;
  g[2 * to] = u[3 * from] + sum;
}

TENON_INLINE void transform_sums(const Vf* u, Vf* g) {
  Vf rows[12];  // [3][4]
  for (int j = 0; j < 4; ++j)
    gradient_side(u + j, 4, rows + j, 4);
  for (int i = 0; i < 3; ++i)
    gradient_side(rows + 4 * i, 1, g + 3 * i, 1);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
