// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of attention as one kernel, on AMX tiles in bf16, for each pair of outer and inner
// index. Of y = w v, w = softmax(scale * q k' + mask), and the gradient dy of y:
//
//   dw = dy v'   ds = scale * w * (dw - sum(dw * w))   dq = ds k   dk = ds' q   dv = w' dy
//
// The weights are computed again, transposed, 32 rows of q at a time with all keys: rows of q are
// the lanes of vectors, so that maxima and sums need no steps across lanes, and what is stored is
// the left operand of the products for dk and dv. Nothing of the size of the scores leaves the
// caches of one core (the idea of Dao et al. 2022, "FlashAttention", section 3.1 and appendix B.4,
// with whole rows). Sums are f32; weights and ds are rounded to bf16 for the products. NaN where
// the formula gives NaN. The result does not depend on the number of threads. No result may overlap
// an operand.

#include "attention_grad_args.h"
#include "context.h"

namespace tenon::onednn::kernels {

// Whether the kernel takes these sizes. has_tiles() must hold before it runs.
bool takes_tile_attention_grad(const AttentionGradSizes& args);
void tile_attention_grad(const Context& context, const TileAttentionGradArgs& args);

}  // namespace tenon::onednn::kernels
