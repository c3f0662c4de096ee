// SPDX-License-Identifier: Apache-2.0
#pragma once
// Merges the nodes of attention's gradient into one, kAttentionGrad, which computes the weights
// (the Softmax of the scores) again instead of reading those of the forward pass: these need not be
// kept, and the forward pass becomes one kernel as in inference (Dao et al. 2022,
// "FlashAttention", section 3.1). With y = w v, w = Softmax(scale * q k + mask):
//
//   dw = dy v'   ds = w * (dw - sum(dw * w))   dq = scale * ds k'   dk = scale * q' ds   dv = w' dy

#include "graph/graph.hpp"

namespace tenon::onednn {

// Inputs: q [.., rows, depth], k [.., depth, keys], v [.., keys, width], dy [.., rows, width] and
// a mask, or kNone, that broadcasts to the scores [.., rows, keys]. Outputs: dq, dk, dv, as the
// operands, but dk is [.., keys, depth] with kDkByKeys; kNone where nobody reads it. Attribute
// "scale".
inline constexpr const char* kAttentionGrad = "Attention.grad";
inline constexpr const char* kDkByKeys = "dk_by_keys";

void merge_attention_grads(Graph& graph);

}  // namespace tenon::onednn
