// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention as one kernel, in f32, for each pair of outer and inner index:
//
//   y = softmax(scale * q k' + mask) v
//
// Eight rows of q at a time: their scores with all keys, the exponentials and the product with v
// stay in the caches of one core, and scores are never stored (the idea of Dao et al. 2022,
// "FlashAttention", section 3, with whole rows: no maximum is revised). The exponentials are
// divided by their sum behind the product with v. A row whose scores are all -infinity, or
// that has +infinity or NaN, gives NaN, as the formula does. The result does not depend on the
// number of threads. dst may not overlap an operand.

#include "attention_args.h"
#include "context.h"

namespace tenon::onednn::kernels {

// Whether the sizes are such that a thread's packed keys and values stay in its L2.
bool takes_attention(const AttentionSizes& args);
void attention(const Context& context, const AttentionArgs& args);

}  // namespace tenon::onednn::kernels
