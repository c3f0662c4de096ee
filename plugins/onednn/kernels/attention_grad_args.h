// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of the gradient of attention, as amx/ sees them too; contract in tile_attention_grad.h.

#include "attention_args.h"

namespace tenon::onednn::kernels {

// A result: [rows or keys, columns] of each pair, the column stride is 1. data null: not asked for.
struct AttentionGradTarget {
  void* data = nullptr;
  ElementType type = ElementType::kF32;  // or kBf16
  AttentionStrides strides = {};
};

// q [rows, depth], k [keys, depth], v [keys, width] and dy [rows, width] for each pair of outer and
// inner index.
struct AttentionGradArgs {
  int64_t outer = 1, inner = 1;
  int64_t rows = 0, keys = 0, depth = 0, width = 0;
  float scale = 1.0F;
  const uint16_t* q = nullptr;  // bf16
  const uint16_t* k = nullptr;
  const uint16_t* v = nullptr;
  const uint16_t* dy = nullptr;
  const float* mask = nullptr;  // added to the scaled scores; null: none. Row stride 0 or 1
  AttentionStrides q_strides, k_strides, v_strides, dy_strides, mask_strides;
  AttentionGradTarget dq, dk, dv;
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

// All results of one pair (outer * inner extent + inner), on the calling thread.
void attention_grad_unit(const AttentionGradArgs& args,
                         const AttentionGradScratch& scratch,
                         char* memory,
                         int64_t pair);

}  // namespace amx

}  // namespace tenon::onednn::kernels
