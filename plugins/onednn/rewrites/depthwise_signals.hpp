// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions of signals with one filter for each channel, and their gradients, become those of
// images of one row: Conv(x [n, c, l]) is Reshape(Conv(Reshape(x) [n, c, 1, l])). oneDNN 3.2 and
// our own kernels have depthwise forms for images only; over signals, which lie the same way in
// memory, oneDNN takes 3 to 18 times as long (3 to 31 taps, 8 to 1024 channels, one thread of an
// EPYC with AVX-512).

#include "graph/graph.hpp"

namespace tenon::onednn {

void make_signals_images(Graph& graph);

}  // namespace tenon::onednn
