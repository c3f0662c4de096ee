// SPDX-License-Identifier: Apache-2.0
// Some rows of the gradient of attention; contract in ../attention_grad.h.

#include "../attention_grad_args.h"
#include "attention_products.h"
#include "level.h"

namespace tenon::onednn::kernels::TENON_LEVEL {

namespace {

static_assert(kAttentionGradRows % kRows == 0);

// Rows of an operand as [kAttentionGradRows][pitch], zeros behind the last row and column.
void load_rows(const AttentionGradRows& rows,
               const float* data,
               const AttentionStrides& s,
               int64_t columns,
               int64_t pitch,
               float* to) {
  const float* from = data + rows.outer * s.outer + rows.inner * s.inner + rows.first * s.row;
  for (int64_t r = 0; r < kAttentionGradRows; ++r, from += s.row, to += pitch) {
    const int64_t count = r < rows.count ? columns : 0;
    if (s.column == 1)
      load_f32({from, ElementType::kF32}, 0, count, to);
    else
      load_strided({from, ElementType::kF32}, 0, s.column, count, to);
    for (int64_t i = count; i < pitch; ++i)
      to[i] = 0.0F;
  }
}

// w = e * factor, in place of e; dw becomes scale * w * (dw - sum(dw * w)).
void differentiate(float* e, float* dw, float factor, float scale, int64_t padded_keys) {
  const Vf by = splat(factor);
  Vf sum = {};
  for (int64_t i = 0; i < padded_keys; i += kLanes) {
    const Vf w = load(e + i) * by;
    store(e + i, w);
    sum = fma(w, load(dw + i), sum);
  }
  const Vf mean = splat(sum_lanes(sum));
  for (int64_t i = 0; i < padded_keys; i += kLanes)
    store(dw + i, load(e + i) * scale * (load(dw + i) - mean));
}

// sums += left' rows, over the rows of a block: left [rows][pitch], sums [panels][pitch][kPanel].
void add_outer(const AttentionGradRows& rows,
               const float* left,
               const float* right,
               int64_t columns,
               float* sums) {
  for (int64_t panel = 0; panel < columns; panel += kPanel)
    for (int64_t key = 0; key < rows.pitch; key += kRows, sums += kRows * kPanel)
      for (int64_t column = 0; column < kPanel; column += kVectors * kLanes) {
        float* const at = sums + column;
        Vf held[kRows][kVectors];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v)
            held[r][v] = load(at + r * kPanel + v * kLanes);
        }
        add_products({left + key, 1, rows.pitch}, right + panel + column, columns, rows.count,
                     held);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v)
            store(at + r * kPanel + v * kLanes, held[r][v]);
        }
      }
}

void store_dq(const AttentionGradRows& rows, const float* ones, int64_t count) {
  const AttentionGradArgs& args = rows.args;
  const AttentionStrides& s = args.dq.strides;
  for (int64_t column = 0; column < args.depth; column += kPanel) {
    alignas(64) float made[kAttentionGradRows * kPanel];
    product({rows.weights_grad, rows.pitch, 1}, rows.key_rows + column * args.keys, args.keys, 1,
            ones, made, kPanel, count);
    const int64_t left = args.depth - column;
    for (int64_t r = 0; r < rows.count; ++r)
      store_f32(made + r * kPanel, left < kPanel ? left : kPanel, {args.dq.data, args.dq.type, {}},
                rows.outer * s.outer + rows.inner * s.inner + (rows.first + r) * s.row + column,
                false);
  }
}

}  // namespace

void attention_grad_rows(const AttentionGradRows& rows) {
  const AttentionGradArgs& args = rows.args;
  load_rows(rows, args.q, args.q_strides, args.depth, rows.padded_depth, rows.queries);
  load_rows(rows, args.dy, args.dy_strides, args.width, rows.padded_width, rows.dy);
  float scales[kAttentionGradRows], ones[kAttentionGradRows];
  for (int64_t r = 0; r < kAttentionGradRows; ++r) {
    scales[r] = args.scale;
    ones[r] = 1.0F;
  }
  const int64_t count = (rows.count + kRows - 1) / kRows * kRows;
  product({rows.queries, rows.padded_depth, 1}, rows.keys, args.depth, rows.pitch / kPanel, scales,
          rows.scores, rows.pitch, count);
  product({rows.dy, rows.padded_width, 1}, rows.values, args.width, rows.pitch / kPanel, ones,
          rows.weights_grad, rows.pitch, count);
  const AttentionStrides& m = args.mask_strides;
  for (int64_t r = 0; r < rows.count; ++r) {
    const float* const mask =
        args.mask == nullptr
            ? nullptr
            : args.mask + rows.outer * m.outer + rows.inner * m.inner + (rows.first + r) * m.row;
    float* const scores = rows.scores + r * rows.pitch;
    const float factor = exponentials(scores, mask, args.keys);
    for (int64_t i = (args.keys + kLanes - 1) / kLanes * kLanes; i < rows.pitch; ++i)
      scores[i] = 0.0F;
    differentiate(scores, rows.weights_grad + r * rows.pitch, factor, args.scale, rows.pitch);
  }
  if (args.dv.data != nullptr) add_outer(rows, rows.scores, rows.dy, rows.padded_width, rows.dv);
  if (args.dk.data != nullptr)
    add_outer(rows, rows.weights_grad, rows.queries, rows.padded_depth, rows.dk);
  if (args.dq.data != nullptr) store_dq(rows, ones, count);
}

}  // namespace tenon::onednn::kernels::TENON_LEVEL
