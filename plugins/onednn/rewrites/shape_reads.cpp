// SPDX-License-Identifier: Apache-2.0
#include "shape_reads.hpp"

namespace tenon::onednn {

void drop_shape_reads(Graph& graph) {
  bool found = false;
  for (Node& node : graph.nodes) {
    if (node.op != "RandomUniformLike" && node.op != "RandomNormalLike") continue;
    node.inputs[0] = kNone;
    found = true;
  }
  if (found) graph.finish();
}

}  // namespace tenon::onednn
