// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scores, Softmax and context of attention, found as one chain and lowered as one: one kernel
// (fused_attention.cpp), or primitives that go by parts which stay in cache (attention.cpp).

#include <optional>

#include "choice.hpp"
#include "lowering/epilogue.hpp"
#include "lowering/softmax_front.hpp"
#include "product.hpp"

namespace tenon::onednn {

struct Attention {
  int scores = kNone;   // values
  int weights = kNone;  // scores' Softmax
  int q = kNone, k = kNone, v = kNone;
  int context = kNone;  // the node that multiplies weights and v
  SoftmaxFront front = {};
  Epilogue epilogue = {};  // behind the context: nothing, or a QuantizeLinear
};
// From the node of the scores; nothing where there is no such chain.
std::optional<Attention> find_attention(Lowering& lowering, int node);
// Memory for the result, in the layout that its reader wants; sets its view.
View make_context(Lowering& lowering, const Attention& attention);
// All nodes of the chain are done.
void mark_attention(Lowering& lowering, const Attention& attention);

struct AttentionSite {
  Lowering& lowering;
  Product scores;  // as a product of its own, where no chain or no form of it is there
  std::optional<Attention> attention;
};
constexpr const char* kQuantizedValues = "the values are quantized";
// As one step: in bf16, in f32.
Offer offer_tile_attention(const AttentionSite& site);
Offer offer_vector_attention(const AttentionSite& site);

}  // namespace tenon::onednn
