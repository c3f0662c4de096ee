// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the gradient of attention, as level/ and amx/ see them too; contracts in
// attention_grad.h and tile_attention_grad.h.

#include "attention_args.h"

namespace tenon::onednn::kernels {

// A result: [rows or keys, columns] of each pair, the column stride is 1. data null: not asked for.
struct AttentionGradTarget {
  void* data = nullptr;
  ElementType type = ElementType::kF32;  // or kBf16
  AttentionStrides strides = {};
};

// Everything but q [rows, depth], k [keys, depth], v [keys, width] and dy [rows, width] themselves.
struct AttentionGradSizes {
  int64_t outer = 1, inner = 1;
  int64_t rows = 0, keys = 0, depth = 0, width = 0;
  float scale = 1.0F;
  const float* mask = nullptr;  // added to the scaled scores; null: none
  AttentionStrides q_strides, k_strides, v_strides, dy_strides, mask_strides;
  AttentionGradTarget dq, dk, dv;
};

// In f32. The column stride of the mask is 1.
struct AttentionGradArgs : AttentionGradSizes {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* dy = nullptr;
};

constexpr int64_t kAttentionGradRows = 16;  // of q at most, at once

// Some rows of one pair, whose operands are packed.
struct AttentionGradRows {
  const AttentionGradArgs& args;
  const float* keys;      // [panels of keys][depth][kAttentionPanel], zeros behind the last key
  const float* values;    // [panels of keys][width][kAttentionPanel]
  const float* key_rows;  // [panels of depth][keys][kAttentionPanel]
  // Scratch: rows of q and dy, [kAttentionGradRows][columns in whole panels]; scores and the
  // gradient of weights, [kAttentionGradRows][pitch].
  float* queries;
  float* dy;
  float* scores;
  float* weights_grad;
  // Sums over rows, [panels of columns][pitch][kAttentionPanel].
  float* dk;
  float* dv;
  int64_t pitch;  // keys in whole panels
  int64_t padded_depth, padded_width;
  int64_t outer, inner;
  int64_t first, count;  // rows of q; count at most kAttentionGradRows
};

// In bf16. The row stride of the mask is 0 or 1.
struct TileAttentionGradArgs : AttentionGradSizes {
  const uint16_t* q = nullptr;
  const uint16_t* k = nullptr;
  const uint16_t* v = nullptr;
  const uint16_t* dy = nullptr;
};

constexpr int64_t kAttentionChunk = 128;  // rows whose weights are kept at once, a multiple of 32

// The memory of one thread, in bytes from its 64-byte aligned begin. "Left": rows side by side,
// "right": as amx/attention_pack.h has right operands; k counts what a product sums over.
struct AttentionGradScratch {
  int64_t padded_keys = 0, padded_depth = 0, padded_width = 0;  // multiples of 32
  // Of the pair: k and v as left operands by keys; k as a left operand by columns.
  int64_t k_at = 0, v_at = 0, k_columns_at = 0;
  // Of a chunk: q and dy as right operands by rows, and summed over rows.
  int64_t q_at = 0, dy_at = 0, q_sum_at = 0, dy_sum_at = 0;
  // Of a chunk: weights and the gradient of scores, [keys][kAttentionChunk] in bf16.
  int64_t weights_at = 0, scores_grad_at = 0;
  // Of 32 rows, [keys][32] in f32: scores, the gradient of weights. ds as a right operand.
  int64_t scores_at = 0, weights_grad_at = 0, scores_right_at = 0;
  // f32: 32 columns of dq by rows; sums of dk and dv over chunks.
  int64_t dq_at = 0, dk_at = 0, dv_at = 0;
  int64_t bytes = 0;
};

namespace amx {

// All results of one pair (outer * inner extent + inner), on the calling thread. has_next: it comes
// to the next pair behind this one.
void attention_grad_unit(const TileAttentionGradArgs& args,
                         const AttentionGradScratch& scratch,
                         char* memory,
                         int64_t pair,
                         bool has_next);

}  // namespace amx

}  // namespace tenon::onednn::kernels
