// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conv of one signal with one long filter, in int8: what resampling and smoothing of audio is. With
// one channel on either side a product has nothing to lie along.

#include "../tail.hpp"

namespace tenon::onednn {

// False, and nothing done, where that is not what the node is or oneDNN has no fast kernel for it.
// The node must be one that runs in int8, and oneDNN's sums must be exact.
bool lower_filter(Lowering& lowering, int node, const Tail& tail);

}  // namespace tenon::onednn
