// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands of attention as its kernels read them.

#include "kernels/attention_args.h"
#include "lowering/lowering.hpp"

namespace tenon::onednn {

// Of a view of rank 3 or 4; axes of extent 1 broadcast. is_transposed: its last axis counts rows.
kernels::AttentionStrides attention_strides(const View& view, bool is_transposed);
// Over scores of rank 4, aligned with them from the last axis on.
kernels::AttentionStrides mask_strides(const View& mask);
// A mask is read as f32, and its last axis is that of the keys. kNone fits.
bool fits_keys(const Graph& graph, int mask, int64_t keys);
constexpr const char* kLongHeads = "too many keys or columns a head";
constexpr const char* kShortMask = "the mask is not as long as the scores";
// The value in the type that is computed in, before it is: columns of a head lie side by side,
// heads of [batch, tokens, heads, depth] are strides.
View planned_rows(const Lowering& lowering, int value);

}  // namespace tenon::onednn
