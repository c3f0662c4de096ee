// SPDX-License-Identifier: Apache-2.0
#pragma once
// ConvInteger with constant weights, as dynamic quantization writes it, becomes a convolution in
// f32 of the integers less their zero points. It is exact where no sum can pass 2^24, which the
// weights say: the largest sum of |w - zero point| of a filter, times 255. Casts to f32 behind it
// read the sums as they are.

#include "graph/graph.hpp"

namespace tenon::onednn {

// Before claiming; nodes that it adds have no source. What it leaves says why (Node::unbound).
void float_conv_integers(Graph& graph);

}  // namespace tenon::onednn
