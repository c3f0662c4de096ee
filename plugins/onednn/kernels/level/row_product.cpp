// SPDX-License-Identifier: Apache-2.0
// One row times a matrix; contract in ../row_product.h.

#include "../row_product_args.h"
#include "elements.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int64_t kRows = 8;        // of the matrix, that are read at once
constexpr int64_t kColumns = 2048;  // whose sums stay in the first cache

// What `rows` rows of the matrix add to columns [lo, hi); is_first: there is no sum yet.
template <int64_t fixed_rows>
void add_rows(const RowProductPiece& p, int64_t k, int64_t any_rows, int64_t lo, int64_t hi) {
  const int64_t rows = fixed_rows > 0 ? fixed_rows : any_rows;
  const float* const b = p.b + k * p.b_k;
  float factors[kRows];
  for (int64_t r = 0; r < rows; ++r)
    factors[r] = p.a[(k + r) * p.a_k];
  each_register(hi - lo, [&](int64_t i, int64_t lanes) {
    const float* at = b + lo + i;
    Vf sum = load_some(at, lanes) * factors[0];
    for (int64_t r = 1; r < rows; ++r)
      sum = fma(load_some(at + r * p.b_k, lanes), splat(factors[r]), sum);
    float* const dst = p.dst + lo + i;
    if (k > 0) sum += load_some(dst, lanes);
    store_some(dst, sum, lanes);
  });
}

void along_columns(const RowProductPiece& p, int64_t lo, int64_t hi) {
  for (; lo < hi; lo += kColumns) {
    const int64_t end = lo + kColumns < hi ? lo + kColumns : hi;
    int64_t k = 0;
    for (; k + kRows <= p.k; k += kRows)
      add_rows<kRows>(p, k, kRows, lo, end);
    if (k < p.k) add_rows<0>(p, k, p.k - k, lo, end);
  }
}

// Several columns at once, so that their sums do not wait for each other.
template <int n>
void along_sums(const RowProductPiece& p, int64_t column) {
  const float* const b = p.b + column * p.b_column;
  Vf sums[n] = {};
  each_register(p.k, [&](int64_t k, int64_t lanes) {
    const Vf a = load_some(p.a + k, lanes);
    for (int c = 0; c < n; ++c)
      sums[c] = fma(a, load_some(b + c * p.b_column + k, lanes), sums[c]);
  });
  for (int c = 0; c < n; ++c)
    p.dst[column + c] = sum_lanes(sums[c]);
}

}  // namespace

void row_product_columns(const RowProductPiece& piece, int64_t lo, int64_t hi) {
  if (piece.b_column == 1) return along_columns(piece, lo, hi);
  constexpr int kGroup = 4;
  int64_t column = lo;
  for (; column + kGroup <= hi; column += kGroup)
    along_sums<kGroup>(piece, column);
  for (; column < hi; ++column)
    along_sums<1>(piece, column);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
