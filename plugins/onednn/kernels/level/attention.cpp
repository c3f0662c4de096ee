// SPDX-License-Identifier: Apache-2.0
// Some rows of attention: scores, exponentials, context; contract in ../attention.h.

#include "level.h"
#include "vector_math.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

constexpr int kVectors = 2;  // of columns at once
// kRows x kVectors sums leave half of the registers.
constexpr int kRows = kCpuRegisters / 4;
constexpr int64_t kPanel = kAttentionPanel;
static_assert(kAttentionRows % kRows == 0 && kPanel % (kVectors * kLanes) == 0);

// sums[r] = a[r] b for kVectors registers of columns: a: [kRows, depth] a_row apart, b: [depth,
// kPanel].
inline void multiply(
    const float* a, int64_t a_row, const float* b, int64_t depth, Vf (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = Vf{};
  }
  for (int64_t d = 0; d < depth; ++d, ++a, b += kPanel) {
    Vf columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      columns[v] = load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vf word = splat(a[r * a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = fma(word, columns[v], sums[r][v]);
    }
  }
}

// dst[r] = factors[r] * a[r] b for panels of b, kRows rows at a time; all rows of a are readable.
void product(const float* a,
             int64_t a_row,
             const float* b,
             int64_t depth,
             int64_t panels,
             const float* factors,
             float* dst,
             int64_t dst_row,
             int64_t rows) {
  for (int64_t panel = 0; panel < panels; ++panel, b += depth * kPanel) {
    for (int64_t column = 0; column < kPanel; column += kVectors * kLanes) {
      for (int64_t row = 0; row < rows; row += kRows) {
        Vf sums[kRows][kVectors];
        multiply(a + row * a_row, a_row, b + column, depth, sums);
        float* const at = dst + row * dst_row + panel * kPanel + column;
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v)
            store(at + r * dst_row + v * kLanes, sums[r][v] * splat(factors[row + r]));
        }
      }
    }
  }
}

// The scores of a row become exponentials; 1 / their sum.
float exponentials(float* scores, const float* mask, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
  const int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  Vf top = splat(-kInfinity);
  if (whole < n) {
    for (int64_t i = n; i < padded; ++i)
      scores[i] = -kInfinity;
    if (mask != nullptr)
      store(scores + whole, load(scores + whole) + load_part(mask + whole, n - whole, 0.0F));
    top = load(scores + whole);
  }
  for (int64_t i = 0; i < whole; i += kLanes) {
    Vf x = load(scores + i);
    if (mask != nullptr) {
      x += load(mask + i);
      store(scores + i, x);
    }
    top = max_fast(x, top);
  }
  const float most = max_lanes(top);
  Vf sum = {};
  for (int64_t i = 0; i < padded; i += kLanes) {
    const Vf e = exp_nonpositive(load(scores + i) - most);
    store(scores + i, e);
    sum += e;
  }
  return 1.0F / sum_lanes(sum);
}

}  // namespace

void attention_rows(const AttentionRows& rows) {
  const AttentionArgs& args = rows.args;
  auto at = [&](const AttentionStrides& strides, int64_t row) {
    return rows.outer * strides.outer + rows.inner * strides.inner + row * strides.row;
  };
  // Whole blocks of rows are multiplied: those behind the last one are copies of it.
  const float* queries = args.q + at(args.q_strides, rows.first);
  int64_t query_row = args.q_strides.row;
  if (rows.count < kAttentionRows || args.q_strides.column != 1) {
    for (int64_t r = 0; r < kAttentionRows; ++r) {
      const int64_t row = rows.first + (r < rows.count ? r : rows.count - 1);
      const Source query{args.q + at(args.q_strides, row), ElementType::kF32};
      load_strided(query, 0, args.q_strides.column, args.depth, rows.queries + r * args.depth);
    }
    queries = rows.queries;
    query_row = args.depth;
  }
  float factors[kAttentionRows];
  for (float& factor : factors)
    factor = args.scale;
  const int64_t count = (rows.count + kRows - 1) / kRows * kRows;
  product(queries, query_row, rows.keys, args.depth, (args.keys + kPanel - 1) / kPanel, factors,
          rows.scores, rows.pitch, count);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = rows.first + (r < rows.count ? r : rows.count - 1);
    const float* mask = args.mask == nullptr ? nullptr : args.mask + at(args.mask_strides, row);
    factors[r] = exponentials(rows.scores + r * rows.pitch, mask, args.keys);
  }
  for (int64_t column = 0; column < args.width; column += kPanel) {
    const int64_t left = args.width - column;
    const int64_t width = left < kPanel ? left : kPanel;
    alignas(64) float context[kAttentionRows * kPanel];
    product(rows.scores, rows.pitch, rows.values + column * args.keys, args.keys, 1, factors,
            context, kPanel, count);
    for (int64_t r = 0; r < rows.count; ++r)
      store_f32(context + r * kPanel, width, args.dst,
                at(args.dst_strides, rows.first + r) + column, false);
  }
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
