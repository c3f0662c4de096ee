// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arguments of attention in one kernel, as level/ and amx/ see them too; contracts in attention.h
// and tile_attention.h.

#include <cstdint>

#include "types.h"

namespace tenon::onednn::kernels {

// Of one operand: elements from one index to the next of [outer, inner, row, column].
struct AttentionStrides {
  int64_t outer = 0, inner = 0, row = 0, column = 0;
};

// Everything but q [rows, depth], k [keys, depth] and v [keys, width] themselves.
struct AttentionSizes {
  int64_t outer = 1, inner = 1;  // batches and heads, say
  int64_t rows = 0;              // of q and of the result
  int64_t keys = 0;              // rows of k and v
  int64_t depth = 0;             // columns of q and k
  int64_t width = 0;             // columns of v and of the result
  const float* mask = nullptr;   // added to the scaled scores; null: none. Column stride 1
  Target dst = {};               // column stride 1
  AttentionStrides q_strides, k_strides, v_strides, mask_strides, dst_strides;
  float scale = 1.0F;
};

// In f32; dst: any type that store_f32 takes.
struct AttentionArgs : AttentionSizes {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
};

constexpr int64_t kAttentionPanel = 32;  // keys, or columns of v, that are multiplied at once
constexpr int64_t kAttentionRows = 8;    // of q at most, at once

// Some rows of one pair of outer and inner index, whose keys and values are packed.
struct AttentionRows {
  const AttentionArgs& args;
  // [panels of keys][depth][kAttentionPanel], zeros behind the last key.
  const float* keys;
  // [panels of columns][keys][kAttentionPanel], zeros behind the last column.
  const float* values;
  float* queries;  // scratch, [kAttentionRows][depth]
  float* scores;   // scratch, [kAttentionRows][pitch]
  int64_t pitch;   // keys in whole panels
  int64_t outer, inner;
  int64_t first, count;  // rows of q; count at most kAttentionRows
};

// In bf16; dst: kF32, kBf16, kU8, kS8. The column stride of q is 1.
struct TileAttentionArgs : AttentionSizes {
  const uint16_t* q = nullptr;
  const uint16_t* k = nullptr;
  const uint16_t* v = nullptr;
};

// The memory of one thread, in bytes from its 64-byte aligned begin.
struct AttentionScratch {
  int64_t depth_bytes = 0;  // of a row of q, in whole steps
  int64_t padded_keys = 0;  // a multiple of 32
  int64_t keys_at = 0, values_at = 0, rows_at = 0, scores_at = 0, weights_at = 0, mask_at = 0;
  int64_t bytes = 0;
};

namespace amx {

// All rows of one pair of outer and inner index (outer * inner extent + inner), on the calling
// thread. has_next: it comes to the next pair behind this one.
void attention_unit(const TileAttentionArgs& args,
                    const AttentionScratch& scratch,
                    char* memory,
                    int64_t pair,
                    bool has_next);

}  // namespace amx

}  // namespace tenon::onednn::kernels
