// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activations with a scale for each channel in front of depthwise convolutions, as NNCF writes
// them: Q(x; s[c]) -> DQ -> Conv(DQ(w; t[c])). Each result sees one channel, so s goes to the
// weights' scales and x is divided by it in front of the rounding:
//
//   Q(x / s[c]; 1) -> DQ(1) -> Conv(DQ(w; t[c] s[c]))
//
// and the convolution runs in 8 bits, bit for bit what the file says. Behind a product x is
// multiplied by 1 / s[c], which its epilogue takes along as it does with one scale: what lies
// within two units in the last place of a step's border may go to the other side. All zero points
// must be the same.

#include "graph/graph.hpp"

namespace tenon::onednn {

void move_channel_scales(Graph& graph);

}  // namespace tenon::onednn
