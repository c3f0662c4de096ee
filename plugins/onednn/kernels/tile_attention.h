// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention as one kernel, on AMX tiles in bf16, for each pair of outer and inner index:
//
//   y = softmax(scale * q k' + mask) v
//
// 32 rows of q at a time: their scores with all keys, the exponentials and the product with v stay
// in the caches of one core, and scores are never stored in bf16 (the idea of Dao et al. 2022,
// "FlashAttention", section 3, with whole rows: no maximum is revised). Scores, maxima and sums are
// f32; the exponentials are rounded to bf16 for the product with v, and divided by their sum behind
// it. A row whose scores are all -infinity, or that has +infinity or NaN, gives NaN, as the formula
// does. The result does not depend on the number of threads. dst may not overlap an operand.

#include "attention_args.h"
#include "context.h"

namespace tenon::onednn::kernels {

constexpr int64_t kMostAttentionKeys = 4096;
constexpr int64_t kMostAttentionDepth = 256;  // and width

// Whether the kernel takes these sizes and strides. has_tiles() must hold before it runs.
bool takes_tile_attention(const AttentionSizes& args);
void tile_attention(const Context& context, const TileAttentionArgs& args);

}  // namespace tenon::onednn::kernels
