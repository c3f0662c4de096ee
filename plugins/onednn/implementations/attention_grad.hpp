// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gradient of attention (rewrites/attention_grads.hpp), by one kernel or in parts.

#include "choice.hpp"

namespace tenon::onednn {

struct AttentionGradSite {
  Lowering& lowering;
  const Node& node;
  // Values of the node.
  int q, k, v, dy;
  int mask;        // kNone: none
  int dq, dk, dv;  // kNone: not asked for
  bool is_dk_by_keys;
  float scale;
};

// Memory for the results, in the layouts that their readers want, but columns of a head lie side by
// side. The views are [.., rows or keys, columns]; not there for what is not asked for.
struct AttentionGradViews {
  View dq, dk, dv;
};
AttentionGradViews make_attention_grads(const AttentionGradSite& site);

// As one step: in bf16 on AMX tiles, in f32.
Offer offer_tile_attention_grad(const AttentionGradSite& site);
Offer offer_vector_attention_grad(const AttentionGradSite& site);

}  // namespace tenon::onednn
