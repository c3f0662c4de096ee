// SPDX-License-Identifier: Apache-2.0
#pragma once
// MaxPool with the indices of its maxima.

#include "handlers.hpp"

namespace tenon::onednn {

// Whether the node has a second result.
inline bool has_max_places(const Node& node) {
  return node.outputs.size() > 1 && node.outputs[1] != kNone;
}
void lower_max_places(Lowering& lowering, int node);

}  // namespace tenon::onednn
