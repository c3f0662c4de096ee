// SPDX-License-Identifier: Apache-2.0
#pragma once
// Activations with a scale for each channel in front of depthwise convolutions, as NNCF writes
// them: Q(x; s[c]) -> DQ -> Conv(DQ(w; t[c])). Each result sees one channel, so s goes to the
// weights' scales and x is divided by it in front of the rounding:
//
//   Q(x * (1 / s[c]); 1) -> DQ(1) -> Conv(DQ(w; t[c] s[c]))
//
// which what makes x takes along, and the convolution runs in 8 bits. All zero points must be the
// same.

#include "graph/graph.hpp"

namespace tenon::onednn {

void move_channel_scales(Graph& graph);

}  // namespace tenon::onednn
