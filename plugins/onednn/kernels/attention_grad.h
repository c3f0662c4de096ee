// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of attention as one kernel, in f32, for each pair of outer and inner index: of
// y = w v, w = softmax(scale * q k' + mask), and the gradient dy of y,
//
//   dw = dy v'   ds = scale * w * (dw - sum(dw * w))   dq = ds k   dk = ds' q   dv = w' dy
//
// The weights are computed again, 16 rows of q at a time with all keys, and what is made of them
// stays in the caches of one core, as the sums of dk and dv do (the idea of Dao et al. 2022,
// "FlashAttention", section 3.1, with whole rows: no maximum is revised). NaN where the formula
// gives NaN. The result does not depend on the number of threads. No result may overlap an operand.

#include "attention_grad_args.h"
#include "context.h"

namespace tenon::onednn::kernels {

// Whether the sizes are such that what a thread keeps of a pair stays in its L2.
bool takes_attention_grad(const AttentionGradSizes& args);
void attention_grad(const Context& context, const AttentionGradArgs& args);

}  // namespace tenon::onednn::kernels
